"""Kernel of FAKE_QUANT: rounds floats to the values that a quantized tensor could have."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic.lookup_table import round_half_away
from delegraph.errors import OperatorError
from delegraph.kernels.elementwise.unary import unary_operands
from delegraph.operators.checks import option
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType


@kernel("FAKE_QUANT")
def prepare_fake_quant(context: OpContext, node: Node) -> Eval:
    """Prepare FAKE_QUANT: float32 rounded to the steps of a quantization.

    NaN becomes the smallest value.

    Raises:
        OperatorError: the option for a narrow range is set, or the number of bits is not 0 to 31.
            The official kernel's shift is not defined for other numbers of bits.

    Source:
        tflite/kernels/fake_quant.cc; NudgeQuantizationRange and FakeQuantizeArray,
        internal/quantization_util.cc.
    """
    x, y = unary_operands(context, node, {TensorType.FLOAT32}, adopts=True)
    low, high = np.float32(option(node, "min", 0)), np.float32(option(node, "max", 0))
    if option(node, "narrow_range", False):
        raise OperatorError("narrow_range is set, expected a range of all steps")
    bits = option(node, "num_bits", 8)
    if not 0 <= bits <= 31:
        raise OperatorError(f"num_bits is {bits}, expected 0 to 31")
    last_step = np.float32((1 << bits) - 1)
    with np.errstate(all="ignore"):  # the range may be empty
        scale = (high - low) / last_step
        zero_point = np.float32(_nudged_zero_point(-low / scale, last_step))
        nudged_low, nudged_high = -zero_point * scale, (last_step - zero_point) * scale
        inverse = np.float32(1) / scale

    def run() -> None:
        clamped = np.fmin(np.fmax(x.data, nudged_low), nudged_high)
        y.data[...] = round_half_away((clamped - nudged_low) * inverse) * scale + nudged_low

    return run


def _nudged_zero_point(zero_point: np.float32, last_step: np.float32) -> int:
    """Return *zero_point*, clamped to the steps 0 to *last_step* and rounded to a whole step.

    NaN counts as 0. Only the low 16 bits of the number are returned.
    """
    nearest = round_half_away(np.nan_to_num(zero_point).clip(0, last_step))
    return int(nearest) & 0xFFFF
