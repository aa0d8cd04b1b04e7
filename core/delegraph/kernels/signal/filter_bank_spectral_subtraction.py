"""SignalFilterBankSpectralSubtraction: subtracts an estimate of the noise from each band."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from delegraph.kernels.signal.options import signal_option
from delegraph.operators.checks import require_shape, require_type, tensors_of
from delegraph.operators.kept_array import KeptArray
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel("SignalFilterBankSpectralSubtraction")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare SignalFilterBankSpectralSubtraction: channels minus their moving average.

    Output 1 is that average, the estimate of the noise.

    Even channels are averaged with the weights ``smoothing`` and ``one_minus_smoothing``, odd
    channels with ``alternate_smoothing`` and ``alternate_one_minus_smoothing``. Weights have
    ``spectral_subtraction_bits`` fraction bits. At least the share ``min_signal_remaining`` of the
    signal is kept. With ``clamping`` the average never exceeds the signal.

    Source:
        tflite-micro/signal/micro/kernels/filter_bank_spectral_subtraction.cc,
        src/filter_bank_spectral_subtraction.cc.
    """
    x, y, average = tensors_of(context, node, 1, 2)
    for tensor in (x, y, average):
        require_type(tensor, {TensorType.UINT32})
    channels = signal_option(node, "num_channels", 1)
    require_shape(x, (channels,))
    for tensor in (y, average):
        context.resize_tensor(tensor, x.shape)
    smoothing = _by_channel(node, channels, "smoothing")
    rest = _by_channel(node, channels, "one_minus_smoothing")
    least = np.uint64(signal_option(node, "min_signal_remaining"))
    extra = np.uint32(signal_option(node, "smoothing_bits", 0, 31))
    point = np.uint64(signal_option(node, "spectral_subtraction_bits", 0, 31))
    is_clamping = bool(signal_option(node, "clamping", 0, 1))
    noise = KeptArray(context, node, (channels,), np.uint32)

    def run() -> None:
        kept = noise.data
        signal = np.left_shift(x.data, extra)
        kept[...] = (signal * smoothing + kept * rest) >> point
        below = np.minimum(kept, signal)
        if is_clamping:
            kept[...] = below
        left = (x.data * least >> point).astype(np.uint32)
        y.data[...] = np.maximum(np.right_shift(signal - below, extra), left)
        average.data[...] = kept

    return run


def _by_channel(node: Node, channels: int, name: str) -> NDArray[np.uint64]:
    """Return the option *name* for each of *channels* channels, ``[channels], uint64``.

    Odd channels have the option ``alternate_`` + *name*.
    """
    values = np.full(channels, signal_option(node, name), np.uint64)
    values[1::2] = signal_option(node, f"alternate_{name}")
    return values
