"""Mfcc: mel-frequency cepstral coefficients of a spectrogram."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic.weights import once_if_constant
from delegraph.errors import OperatorError
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.checks import require_rank, require_type, tensors_of
from delegraph.operators.flexbuffer_options import flexbuffer_options, integer_option
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, nothing
from delegraph.schema.enums import TensorType

Doubles = NDArray[np.float64]

_LEAST = 1e-12  # least value of a band before its logarithm is computed


@dataclass(frozen=True, slots=True)
class _Options:
    """The four options of an Mfcc node.

    Attributes:
        upper: highest frequency in Hz.
        lower: lowest frequency in Hz.
        bands: number of bands of the mel filter bank.
        coefficients: number of coefficients of the cosine transform; at most *bands*.
    """

    upper: int
    lower: int
    bands: int
    coefficients: int

    @classmethod
    def of(cls, node: Node) -> _Options:
        """Return the options of *node*, a FlexBuffer map.

        Raises:
            OperatorError: the options are no map, or a value is out of range.
        """
        options = flexbuffer_options(node.custom_options)
        parsed = cls(
            integer_option(options, "upper_frequency_limit", 1),
            integer_option(options, "lower_frequency_limit", 0),
            integer_option(options, "filterbank_channel_count", 1),
            integer_option(options, "dct_coefficient_count", 1),
        )
        if parsed.upper <= parsed.lower:
            raise OperatorError(f"frequency limits are {parsed.lower} and {parsed.upper}")
        if parsed.coefficients > parsed.bands:
            raise OperatorError(f"{parsed.coefficients} coefficients of {parsed.bands} bands")
        return parsed


@kernel("Mfcc")
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare Mfcc: ``[channels, windows, frequencies]`` to rows of coefficients.

    The input has powers. Square roots of powers are summed in bands of equal width on the mel
    scale, and the logarithms of the sums are cosine transformed.

    Source:
        tflite/kernels/mfcc.cc; internal/mfcc.cc, mfcc_mel_filterbank.cc and mfcc_dct.cc.
    """
    x, rate, y = tensors_of(context, node, 2)
    for tensor in (x, y):
        require_type(tensor, {TensorType.FLOAT32})
    require_type(rate, {TensorType.INT32})
    require_rank(x, 3)
    is_empty = 0 in x.shape[:2]
    if (0 in x.shape and not is_empty) or np.prod(rate.shape) != 1:
        shapes = f"{list(x.shape)} and {list(rate.shape)}"
        raise OperatorError(f"inputs have shapes {shapes}, expected sounds and one sample rate")
    options = _Options.of(node)
    context.resize_tensor(y, (*x.shape[:2], options.coefficients))
    if is_empty:
        return nothing
    rows = x.shape[2] + options.coefficients
    context.memory_limit.require(8 * rows * options.bands, "the mel filter bank")
    transform = _cosines(options)
    bands = once_if_constant(lambda: _mel_bands(options, x.shape[2], int(rate.data.item())), rate)

    def run() -> None:
        found = bands()
        if found is None:
            y.data.fill(0)
            return
        used, shares = found
        magnitudes = np.sqrt(x.data[..., used].astype(np.float64))
        logarithms = np.log(np.maximum(magnitudes @ shares, _LEAST))
        y.data[...] = logarithms @ transform

    return run


def _mel_bands(
    options: _Options, frequencies: int, sample_rate: int
) -> tuple[slice, Doubles] | None:
    """Return the slice of frequencies within the limits, and each one's share in each band.

    *frequencies* is the number of the spectrogram's frequencies, and *sample_rate* is in Hz.

    Bands are triangles, each of which ends at the peaks of its neighbours.

    Returns:
        The slice and ``[used frequencies, bands], float64``; None if the upper limit is
        beyond the spectrogram's last frequency: the official kernel then leaves all coefficients 0.

    Raises:
        OperatorError: the spectrogram has only one frequency, or the sample rate is missing.

    Source:
        MfccMelFilterbank, tflite/kernels/internal/mfcc_mel_filterbank.cc.
    """
    if frequencies < 2 or sample_rate < 1:
        raise OperatorError(f"{frequencies} frequencies at {sample_rate} Hz, expected 2 and 1 Hz")
    step = 0.5 * sample_rate / (frequencies - 1)  # Hz
    first, last = int(1.5 + options.lower / step), int(options.upper / step)
    if last >= frequencies:
        return None
    low, high = _mel(options.lower), _mel(options.upper)
    tips = low + (high - low) / (options.bands + 1) * np.arange(options.bands + 2)
    used = np.arange(first, last + 1)
    mels = _mel(used * step)
    right = np.searchsorted(tips[1:-1], mels)  # band whose rising side a frequency is on
    rising = (mels - tips[right]) / (tips[right + 1] - tips[right])
    shares = np.zeros((len(used), options.bands + 2))
    rows = np.arange(len(used))
    shares[rows, right + 1] = rising
    shares[rows, right] = 1 - rising
    return slice(first, last + 1), shares[:, 1:-1]


def _mel(hertz: Any) -> Any:
    """Return the frequency *hertz* on the mel scale."""
    return 1127.0 * np.log1p(hertz / 700.0)


def _cosines(options: _Options) -> Doubles:
    """Return the matrix of the cosine transform: ``[bands, coefficients]``.

    Source:
        MfccDct, tflite/kernels/internal/mfcc_dct.cc.
    """
    band, wave = np.ogrid[: options.bands, : options.coefficients]
    angles = np.pi / options.bands * (band + 0.5) * wave
    matrix: Doubles = np.sqrt(2.0 / options.bands) * np.cos(angles)
    return matrix
