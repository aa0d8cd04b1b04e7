"""FAKE_QUANT."""

from __future__ import annotations

import numpy as np

from delegraph.errors import OperatorError
from delegraph.kernels.checks import option
from delegraph.kernels.lookup_table import round_half_away
from delegraph.kernels.op_table import kernel
from delegraph.kernels.registration import Eval, Node, OpContext
from delegraph.kernels.unary import unary_operands
from delegraph.schema.enums import TensorType


@kernel("FAKE_QUANT", versions=(1, 2))
def prepare_fake_quant(context: OpContext, node: Node) -> Eval:
    """Return the eval of FAKE_QUANT: float32 rounded to the steps of a quantization.

    Raises:
        OperatorError: the options' range does not hold 0 or is empty, or is narrow.

    Source:
        tflite/kernels/fake_quant.cc; NudgeQuantizationRange and FakeQuantizeArray,
        internal/quantization_util.cc.
    """
    x, y = unary_operands(context, node, {TensorType.FLOAT32})
    low, high = np.float32(option(node, "min", 0)), np.float32(option(node, "max", 0))
    if not low <= 0 <= high or low == high:
        raise OperatorError(f"range is [{low}, {high}], expected one that holds 0")
    if option(node, "narrow_range", False):
        raise OperatorError("narrow_range is set, expected a range of all steps")
    quant_low = np.float32(0)
    quant_high = np.float32((1 << option(node, "num_bits", 8)) - 1)
    scale = (high - low) / (quant_high - quant_low)
    zero_point = round_half_away(np.asarray(quant_low - low / scale))
    zero_point = zero_point.clip(quant_low, quant_high)
    nudged_low = np.float32((quant_low - zero_point) * scale)
    nudged_high = np.float32((quant_high - zero_point) * scale)
    inverse = np.float32(1) / scale

    def run() -> None:
        steps = (x.data.clip(nudged_low, nudged_high) - nudged_low) * inverse
        y.data[...] = round_half_away(steps) * scale + nudged_low

    return run
