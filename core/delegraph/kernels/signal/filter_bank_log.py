"""SignalFilterBankLog: computes the logarithm of each band."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from delegraph.kernels.signal.options import signal_option
from delegraph.operators.checks import require_rank, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SEGMENTS = np.arange(130) / 128
_BEND = np.round((np.log2(1 + _SEGMENTS) - _SEGMENTS) * 2**16).astype(np.int64)
_BEND[128:] = 0
"""Differences between log2 and the straight lines between powers of two, in 16 fraction bits."""

_LOG_2 = 45426
"""The natural logarithm of 2, in 16 fraction bits."""

_HALF = 1 << 15
_WORD = (1 << 32) - 1
_LARGEST = 2**15 - 1


@kernel("SignalFilterBankLog")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare SignalFilterBankLog: natural logarithms of ``[n], uint32``, scaled, as int16.

    Numbers are first shifted to the left by ``input_correction_bits``; results for 0 and 1 are 0.
    Logarithms are multiplied by ``output_scale``.

    Source:
        tflite-micro/signal/micro/kernels/filter_bank_log.cc, src/filter_bank_log.cc.
    """
    x, y = tensors_of(context, node, 1)
    require_type(x, {TensorType.UINT32})
    require_type(y, {TensorType.INT16})
    require_rank(x, 1)
    bits = np.uint32(signal_option(node, "input_correction_bits", 0, 31))
    scale = signal_option(node, "output_scale")
    context.resize_tensor(y, x.shape)

    def run() -> None:
        scaled = np.left_shift(x.data, bits)
        logarithms = scaled_logarithm(np.maximum(scaled, 1), scale)
        y.data[...] = np.where(scaled > 1, np.minimum(logarithms, _LARGEST), 0)

    return run


def scaled_logarithm(x: NDArray[np.uint32], scale: int) -> NDArray[np.int64]:
    """Return the natural logarithms of *x*, positive numbers, times *scale*, in 32 bits.

    Source:
        Log32, tflite-micro/signal/src/log.cc.

    >>> scaled_logarithm(np.uint32([1, 1000]), 64).tolist()  # 64 * 6.9078
    [0, 442]
    """
    wide = x.astype(np.int64)
    whole = np.frexp(wide.astype(np.float64))[1].astype(np.int64) - 1
    above = wide - (np.int64(1) << whole)
    line = (above << 16) >> whole
    segment = line >> 9
    slope = _BEND[segment + 1] - _BEND[segment]
    log2 = (whole << 16) + line + _BEND[segment] + ((slope * (line & 511)) >> 16)
    natural = (_LOG_2 * log2 + _HALF) >> 16
    return np.asarray(((scale * natural + _HALF) & _WORD) >> 16)
