"""AudioSpectrogram: the power of each frequency in overlapping windows of sound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from delegraph.operators.checks import require_rank, require_type, tensors_of
from delegraph.operators.flexbuffer_options import flexbuffer_options, integer_option
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray


@kernel("AudioSpectrogram")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare AudioSpectrogram: ``[samples, channels]`` to ``[channels, windows, frequencies]``.

    Windows have Hann's shape and are padded with zeros to a power of two. The options are
    ``window_size``, ``stride`` and ``magnitude_squared``, which gives powers instead of magnitudes.

    Source:
        tflite/kernels/audio_spectrogram.cc and internal/spectrogram.cc.
    """
    x, y = tensors_of(context, node, 1)
    for tensor in (x, y):
        require_type(tensor, {TensorType.FLOAT32})
    require_rank(x, 2)
    options = flexbuffer_options(node.custom_options)
    size, stride = integer_option(options, "window_size", 2), integer_option(options, "stride", 1)
    samples, channels = x.shape
    windows = 1 + (samples - size) // stride if samples >= size else 0
    length = 1 << (size - 1).bit_length()
    context.resize_tensor(y, (channels, windows, 1 + length // 2))
    context.memory_limit.require(8 * size, "the window")
    is_squared, shape = bool(options.get("magnitude_squared", False)), _hann(size)

    def run() -> None:
        if not windows:
            return
        pieces = sliding_window_view(x.data.T, size, axis=1)[:, ::stride]  # [C, windows, size]
        waves = np.fft.rfft(pieces * shape, length)
        power = (np.square(waves.real) + np.square(waves.imag)).astype(np.float32)
        y.data[...] = power if is_squared else np.sqrt(power)

    return run


def _hann(size: int) -> NDArray[np.float64]:
    """Return one period of Hann's window function: ``[size], float64``."""
    window: NDArray[np.float64] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)
    return window
