"""Kernel of WHERE: the indices of true elements."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic.output_shape import size_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import adopt_type, require_type, tensor_types, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType

_TYPES = tensor_types("BOOL FLOAT32 INT8 INT32 INT64 UINT8 UINT32")


@kernel("WHERE")
def prepare_where(context: OpContext, node: Node) -> Eval:
    """Prepare WHERE: indices of nonzero elements, ``[count, rank], int64``.

    Source:
        tflite/kernels/where.cc.
    """
    condition, y = tensors_of(context, node, 1)
    require_type(condition, _TYPES)
    adopt_type(y, TensorType.INT64)
    if not condition.shape:
        raise OperatorError("condition is a scalar, expected at least one dimension")

    def plan() -> tuple[tuple[int, ...], Eval]:
        found = np.argwhere(condition.data)

        def run() -> None:
            y.data[...] = found

        return found.shape, run

    return size_output(context, y, plan, shape_inputs=(condition,))
