"""Kernel of SPARSE_TO_DENSE."""

from __future__ import annotations

from delegraph.arithmetic.indices import row_numbers
from delegraph.arithmetic.output_shape import check_type, integers, size_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import adopt_type, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Shape, element_count
from delegraph.schema.enums import TensorType

_INDICES = {TensorType.INT32, TensorType.INT64}
_VALUES = _INDICES | {TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8}


@kernel("SPARSE_TO_DENSE")
def prepare_sparse_to_dense(context: OpContext, node: Node) -> Eval:
    """Prepare SPARSE_TO_DENSE: values at index tuples, and a default value elsewhere.

    Inputs: indices ``[]``, ``[N]`` or ``[N, rank]``; the output's shape; values ``[]`` or ``[N]``;
    the default. A later value replaces an earlier value at the same position. Values are float32,
    uint8, int8, int32 or int64.

    Source:
        tflite/kernels/sparse_to_dense.cc. An index out of range is an error here.
    """
    indices, shape_input, values, default, y = tensors_of(context, node, 4)
    require_type(indices, _INDICES)
    require_type(shape_input, _INDICES)
    require_type(values, _VALUES)
    adopt_type(y, values.type)
    check_type(default, values, "default value")
    rank = element_count(shape_input.shape)
    depth = indices.shape[1] if len(indices.shape) == 2 else 1
    count = indices.shape[0] if indices.shape else 1
    fits = depth == rank and values.shape in ((), (count,)) and len(indices.shape) < 3
    if not fits or element_count(default.shape) != 1:
        raise OperatorError(
            f"indices {list(indices.shape)} and values {list(values.shape)} do not fit rank {rank}"
        )

    def plan() -> tuple[Shape, Eval]:
        shape = integers(shape_input)

        def place() -> None:
            rows = row_numbers(indices.data.reshape(count, depth), shape)
            y.data.fill(default.data.reshape(-1)[0])
            y.data.reshape(-1)[rows] = values.data

        return shape, place

    return size_output(context, y, plan, shape_inputs=(shape_input,))
