"""Kernel of ONE_HOT: converts indices to vectors."""

from __future__ import annotations

import math

import numpy as np

from delegraph.arithmetic.output_shape import check_type, integers, normalized_axis, size_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import (
    INDEX,
    WIDE_INDEX,
    adopt_type,
    require_one_element,
    require_type,
    tensor_types,
    tensors_of,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Shape

_TYPES = tensor_types("FLOAT32 INT8 UINT8 INT32 INT64 BOOL")


@kernel("ONE_HOT")
def prepare_one_hot(context: OpContext, node: Node) -> Eval:
    """Prepare ONE_HOT: each index becomes a vector along a new axis.

    The vector has the on value at the index and the off value elsewhere.

    Inputs: indices, depth, on value, off value. An index outside ``[0, depth)`` gives off values.

    Source:
        tflite/kernels/one_hot.cc.
    """
    indices, depth_input, on, off, y = tensors_of(context, node, 4)
    require_type(on, _TYPES)
    require_type(indices, WIDE_INDEX)
    require_type(depth_input, INDEX)
    check_type(off, on, "off value")
    adopt_type(y, on.type)
    require_one_element(depth_input, on, off)
    rank = len(indices.shape)
    axis = normalized_axis(int(getattr(node.options, "axis", -1)), rank + 1)

    def plan() -> tuple[Shape, Eval]:
        depth = integers(depth_input)[0]
        if depth < 0:
            raise OperatorError(f"depth is {depth}, expected at least 0")
        outer, inner = math.prod(indices.shape[:axis]), math.prod(indices.shape[axis:])

        def encode() -> None:
            classes = y.data.reshape(outer, depth, inner)
            classes[...] = off.data.reshape(-1)[0]
            chosen = indices.data.reshape(outer, inner)
            i, j = np.nonzero((chosen >= 0) & (chosen < depth))
            classes[i, chosen[i, j], j] = on.data.reshape(-1)[0]

        return (*indices.shape[:axis], depth, *indices.shape[axis:]), encode

    return size_output(context, y, plan, shape_inputs=(depth_input,))
