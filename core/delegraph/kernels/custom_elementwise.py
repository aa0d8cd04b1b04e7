"""Sign and Atan2, custom operators, which came before the builtin ones of the same names."""

from __future__ import annotations

import numpy as np

from delegraph.kernels.unary import unary_operands
from delegraph.operators.checks import (
    require_counts,
    require_same_type,
    require_shape,
    require_type,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, input_tensor, output_tensor
from delegraph.schema.enums import TensorType

_FLOATS = {TensorType.FLOAT32, TensorType.FLOAT64}


@kernel("Sign")
def prepare_sign(context: OpContext, node: Node) -> Eval:
    """Return the eval of Sign: 1, -1, or 0 for zeros and what is no number.

    Source:
        tflite/kernels/sign_custom.cc.
    """
    x, y = unary_operands(context, node, _FLOATS)

    def run() -> None:
        np.subtract(x.data > 0, x.data < 0, out=y.data, dtype=y.data.dtype)

    return run


@kernel("Atan2")
def prepare_atan2(context: OpContext, node: Node) -> Eval:
    """Return the eval of Atan2, the angle of (input 1, input 0); shapes must be the same.

    Source:
        tflite/kernels/atan2_custom.cc.
    """
    require_counts(node, 2)
    a, b = input_tensor(context, node, 0), input_tensor(context, node, 1)
    y = output_tensor(context, node)
    require_type(a, _FLOATS)
    require_same_type(a, b)
    require_same_type(a, y)
    require_shape(b, a.shape)
    context.resize_tensor(y, a.shape)

    def run() -> None:
        np.arctan2(a.data, b.data, out=y.data)

    return run
