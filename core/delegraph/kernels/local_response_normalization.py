"""Kernel of LOCAL_RESPONSE_NORMALIZATION: scales each element by its neighbours across channels."""

from __future__ import annotations

import numpy as np

from delegraph.errors import OperatorError
from delegraph.kernels.elementwise.unary import unary_operands
from delegraph.operators.checks import option
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType


@kernel("LOCAL_RESPONSE_NORMALIZATION")
def prepare_local_response_normalization(context: OpContext, node: Node) -> Eval:
    """Prepare LOCAL_RESPONSE_NORMALIZATION on ``[N, H, W, C], float32``.

    Every element is divided by ``(bias + alpha * s) ** beta``. Here *s* is the sum of the squares
    of all channels that are at most ``radius`` away. The reference kernel omits the last of these
    channels.

    Source:
        tflite/kernels/local_response_norm.cc; LocalResponseNormalization,
        internal/{optimized/optimized_ops,reference/reference_ops}.h.
    """
    x, y = unary_operands(context, node, {TensorType.FLOAT32})
    if len(x.shape) != 4:
        raise OperatorError(f"input has shape {x.shape}, expected 4 dimensions")
    radius, channels = int(option(node, "radius", 0)), x.shape[3]
    if radius < 0:
        raise OperatorError(f"radius is {radius}, expected at least 0")
    window = 2 * radius + (1 if context.numerics == "builtin" else 0)
    bias, alpha = np.float32(option(node, "bias", 0)), np.float32(option(node, "alpha", 0))
    exponent = np.float32(-option(node, "beta", 0))
    padded = context.scratch((*x.shape[:3], channels + 2 * radius), np.float32)

    def run() -> None:
        out, squares = y.data, padded.data
        squares[..., :radius] = 0
        squares[..., channels + radius :] = 0
        np.square(x.data, squares[..., radius : channels + radius])
        out[...] = 0
        for start in range(window):
            np.add(out, squares[..., start : start + channels], out)
        np.multiply(out, alpha, out)
        np.add(out, bias, out)
        np.power(out, exponent, out)
        np.multiply(out, x.data, out)

    return run
