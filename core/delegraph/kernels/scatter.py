"""Kernel of SCATTER_ND: adds slices to zeros at given indices."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic.indices import row_numbers
from delegraph.arithmetic.output_shape import check_type, integers, size_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import adopt_type, require_type, tensor_types, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Shape, Tensor, element_count
from delegraph.schema.enums import TensorType

_TYPES = tensor_types("FLOAT32 BOOL UINT8 INT8 INT32 INT64")


@kernel("SCATTER_ND")
def prepare_scatter_nd(context: OpContext, node: Node) -> Eval:
    """Prepare SCATTER_ND: zeros, with updates added at index tuples.

    Types are float32, bool, uint8, int8, int32 and int64; indices are int32.

    Source:
        tflite/kernels/scatter_nd.cc.
    """
    indices, updates, shape_input, y = tensors_of(context, node, 3)
    require_type(updates, _TYPES)
    require_type(indices, {TensorType.INT32})
    check_type(shape_input, indices, "shape")
    adopt_type(y, updates.type)

    def plan() -> tuple[Shape, Eval]:
        shape = integers(shape_input)
        rows = element_count(indices.shape[:-1])
        depth = _checked_depth(indices, updates, shape)
        flat = (element_count(shape[:depth]), element_count(shape[depth:]))

        def scatter() -> None:
            places = row_numbers(indices.data, shape[:depth])
            target = y.data.reshape(flat)
            target.fill(0)
            np.add.at(target, places, updates.data.reshape(rows, flat[1]))

        return shape, scatter

    return size_output(context, y, plan, shape_inputs=(shape_input,))


def _checked_depth(indices: Tensor, updates: Tensor, shape: list[int]) -> int:
    depth = indices.shape[-1] if indices.shape else 0
    expected = (*indices.shape[:-1], *shape[depth:])
    if not indices.shape or depth > len(shape) or min(shape, default=0) < 0:
        raise OperatorError(f"indices {list(indices.shape)} do not fit the shape {shape}")
    if updates.shape != expected:
        raise OperatorError(f"updates are {list(updates.shape)}, expected {list(expected)}")
    return depth
