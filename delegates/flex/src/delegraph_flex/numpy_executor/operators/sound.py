"""Operators on sound: spectra, cepstral coefficients, and WAV files.

Source:
    core/kernels/spectrogram.cc, mfcc.cc, mfcc_mel_filterbank.cc, mfcc_dct.cc;
    core/lib/wav/wav_io.cc.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from delegraph_flex.data_types import boxed
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.memory import require
from delegraph_flex.numpy_executor.indices import check_scalar
from delegraph_flex.numpy_executor.registry import operator, step_of
from delegraph_flex.numpy_executor.rounding import half_away

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

_LEAST = 1e-12  # least value of a band before its logarithm is computed
_FULL_SCALE = 1 << 15
_CHUNKS_BEFORE_FORMAT = (
    b"JUNK",
    b"bext",
    b"iXML",
    b"qlty",
    b"mext",
    b"levl",
    b"link",
    b"axml",
)


@operator("AudioSpectrogram")
def audio_spectrogram(node: FlexNode) -> Step:
    """Return a function that computes spectra of overlapping windows.

    The outputs are ``[channels, windows, frequencies]``.
    """
    size, stride = node.int("window_size"), node.int("stride")
    if size < 2 or stride < 1 or size > 1 << 24:
        raise Unsupported(f"attributes 'window_size' and 'stride' are {size} and {stride}")
    is_squared = node.bool("magnitude_squared", False)
    length = 1 << (size - 1).bit_length()
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)

    def run(x: Floats) -> Floats:
        if x.ndim != 2:
            raise ValueError(f"sound has shape {list(x.shape)}, expected [samples, channels]")
        if len(x) < size:
            return np.zeros((x.shape[1], 0, 1 + length // 2), np.float32)
        pieces = sliding_window_view(x.T, size, axis=1)[:, ::stride]  # [C, windows, size]
        waves = np.fft.rfft(pieces * hann, length)
        power = (np.square(waves.real) + np.square(waves.imag)).astype(np.float32)
        return power if is_squared else np.sqrt(power)

    return run


@operator("Mfcc")
def mfcc(node: FlexNode) -> Step:
    """Function that computes cepstral coefficients of spectra: ``[channels, windows, count]``."""
    upper = node.float("upper_frequency_limit", 4000.0)
    lower = node.float("lower_frequency_limit", 20.0)
    bands = node.int("filterbank_channel_count", 40)
    count = node.int("dct_coefficient_count", 13)
    if not (0 <= lower < upper and 1 <= count <= bands <= 1 << 16):
        raise Unsupported(f"{count} coefficients of {bands} bands from {lower} to {upper} Hz")
    band, wave = np.ogrid[:bands, :count]
    cosines = np.sqrt(2.0 / bands) * np.cos(np.pi / bands * (band + 0.5) * wave)
    shares_of = lru_cache(maxsize=4)(
        lambda size, rate: _mel_shares(size, rate, lower, upper, bands)
    )

    def run(x: Floats, rate: NDArray[Any]) -> Floats:
        if x.ndim != 3 or x.shape[2] < 2 or np.ndim(rate) or rate < 1:
            shapes = f"{list(x.shape)} at {rate} Hz"
            raise ValueError(f"spectrogram is {shapes}, expected 3 dimensions, two frequencies")
        shares = shares_of(x.shape[2], int(rate))
        if shares is None:
            return np.zeros((*x.shape[:2], count), np.float32)
        magnitudes = np.sqrt(x.astype(np.float64)) @ shares
        coefficients: Doubles = np.log(np.maximum(magnitudes, _LEAST)) @ cosines
        return coefficients.astype(np.float32)

    return run


def _mel_shares(size: int, rate: int, lower: float, upper: float, bands: int) -> Doubles | None:
    """Return the share of each of *size* frequencies in each band: ``[size, bands]``.

    *rate* is the sample rate; *lower* and *upper* are limits in Hz.

    Bands are triangles of equal width on the mel scale, each of which ends at the peaks of its
    neighbours. The result is None if the upper limit is above the last frequency; TensorFlow then
    computes zeros.
    """
    step = 0.5 * rate / (size - 1)  # Hz
    first, last = int(1.5 + lower / step), int(upper / step)
    if last >= size:
        return None
    low, high = _mel(lower), _mel(upper)
    require((bands + 2,), np.float64)
    tips = low + (high - low) / (bands + 1) * np.arange(bands + 2)
    used = np.arange(first, last + 1)
    mels = _mel(used * step)
    # Number of the band on whose rising side a frequency lies.
    right = np.searchsorted(tips[1:-1], mels)
    rising = (mels - tips[right]) / (tips[right + 1] - tips[right])
    require((size, bands + 2), np.float64)
    shares = np.zeros((size, bands + 2))
    shares[used, right + 1] = rising
    shares[used, right] = 1 - rising
    return shares[:, 1:-1]


def _mel(hertz: Any) -> Any:
    return 1127.0 * np.log1p(hertz / 700.0)


@operator("DecodeWav")
def decode_wav(node: FlexNode) -> Step:
    """Function that decodes a 16-bit WAV file to samples in [-1, 1), ``[samples, channels]``."""
    channels, samples = (node.int(f"desired_{name}", -1) for name in ("channels", "samples"))
    if min(channels, samples) < -1:
        raise Unsupported(f"{channels} channels and {samples} samples are wanted")

    def run(contents: Any) -> list[NDArray[Any]]:
        sound, rate = _read_wav(_scalar_bytes(contents))
        count = len(sound) if samples == -1 else samples
        require((count, max(channels, sound.shape[1])), np.float32)
        require((len(sound), max(channels, 0)), sound.dtype)
        if channels != -1:
            order = np.minimum(np.arange(channels), sound.shape[1] - 1)
            sound = sound[:, order]
        result = np.zeros((count, sound.shape[1]), np.float32)
        result[: len(sound)] = sound[:count]
        return [result / np.float32(_FULL_SCALE), np.array(rate, np.uint32).view(np.int32)]

    return run


def _scalar_bytes(contents: Any) -> bytes:
    check_scalar(contents, "contents")
    data: bytes = np.asarray(contents, object).item()
    return data


def _read_wav(data: bytes) -> tuple[NDArray[np.int16], int]:
    """Return the samples, ``[samples, channels]``, and the sample rate.

    Raises:
        ValueError: *data* is no WAV file of 16-bit integers.
    """
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise ValueError(f"the file begins with {data[:12]!r}, expected RIFF....WAVE")
    chunks = _chunks(data)
    name, start, size = next(chunks, (b"", 0, 0))
    while name in _CHUNKS_BEFORE_FORMAT:
        name, start, size = next(chunks, (b"", 0, 0))
    if name != b"fmt " or size not in (16, 18) or start + size > len(data):
        raise ValueError(f"chunk {name!r} of {size} bytes, expected 'fmt ' of 16 or 18")
    code, channels, rate, speed, frame, bits = struct.unpack_from("<HHIIHH", data, start)
    if code != 1 or bits != 16 or channels < 1 or frame != 2 * channels:
        kind = f"format {code}, {channels} channels, {bits} bits, {frame} bytes a frame"
        raise ValueError(f"the sound has {kind}, expected 16-bit integers, format 1")
    if speed != frame * rate & 0xFFFFFFFF:
        raise ValueError(f"{speed} bytes a second, expected {frame * rate}")
    found = [(start, size) for name, start, size in chunks if name == b"data"]
    if len(found) != 1:
        raise ValueError(f"{len(found)} data chunks, expected one")
    start, size = found[0]
    if size % frame:
        raise ValueError(f"{size} bytes of sound, expected a multiple of {frame}")
    samples = np.frombuffer(data, "<i2", size // frame * channels, start)
    return samples.reshape(-1, channels), rate


def _chunks(data: bytes) -> Any:
    """Yield name, start and size of each chunk of a WAV file, *data*."""
    at = 12
    while at < len(data):
        if at + 8 > len(data):
            raise ValueError(f"a chunk begins at byte {at} of {len(data)}, expected 8 bytes of it")
        name, size = struct.unpack_from("<4sI", data, at)
        at += 8
        if name == b"data" and at + size > len(data):
            raise ValueError(f"{size} bytes of sound at byte {at} of {len(data)}")
        yield name, at, size
        at += size


@step_of("EncodeWav")
def encode_wav(sound: Floats, rate: NDArray[Any]) -> NDArray[Any]:
    """Return samples ``[samples, channels]`` and their rate as a 16-bit WAV file."""
    if sound.ndim != 2 or not 1 <= sound.shape[1] < 1 << 16 or np.ndim(rate) or rate < 1:
        shapes = f"{list(sound.shape)} at {rate} Hz"
        raise ValueError(f"sound is {shapes}, expected [samples, channels]")
    scaled = sound * np.float32(_FULL_SCALE)
    samples = np.clip(np.nan_to_num(half_away(scaled)), -_FULL_SCALE, _FULL_SCALE - 1).astype("<i2")
    frame, size = 2 * sound.shape[1], samples.nbytes
    layout = (1, sound.shape[1], int(rate), int(rate) * frame & 0xFFFFFFFF, frame, 16)
    header = b"RIFF" + struct.pack("<I", size + 36) + b"WAVEfmt " + struct.pack("<I", 16)
    header += struct.pack("<HHIIHH", *layout) + b"data" + struct.pack("<I", size)
    return boxed(header + samples.tobytes())
