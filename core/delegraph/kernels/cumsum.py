"""Kernel of CUMSUM: running sums along one axis."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic.output_shape import integers, normalized_axis
from delegraph.errors import OperatorError
from delegraph.operators.checks import option, require_same_type, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import element_count
from delegraph.schema.enums import TensorType


@kernel("CUMSUM")
def prepare_cumsum(context: OpContext, node: Node) -> Eval:
    """Prepare CUMSUM: running sums along an axis, for float32, int32 and int64.

    Source:
        tflite/kernels/cumsum.cc.
    """
    x, axis, y = tensors_of(context, node, 2)
    require_type(x, {TensorType.FLOAT32, TensorType.INT32, TensorType.INT64})
    require_same_type(x, y)
    require_type(axis, {TensorType.INT32})
    if not x.shape or element_count(axis.shape) != 1:
        raise OperatorError(
            f"input and axis have shapes {list(x.shape)} and {list(axis.shape)}, expected a "
            "dimension in the first and one element in the second"
        )
    if axis.is_constant_or_persistent:
        # Raises for an invalid axis already in prepare.
        normalized_axis(integers(axis)[0], len(x.shape))
    context.resize_tensor(y, x.shape)
    exclusive = bool(option(node, "exclusive", False))
    step = -1 if option(node, "reverse", False) else 1

    def run() -> None:
        along = normalized_axis(integers(axis)[0], len(x.shape))
        source = np.moveaxis(x.data, along, 0)[::step]
        target = np.moveaxis(y.data, along, 0)[::step]
        if exclusive:
            target[:1] = 0
            source, target = source[:-1], target[1:]
        np.add.accumulate(source, 0, None, target)

    return run
