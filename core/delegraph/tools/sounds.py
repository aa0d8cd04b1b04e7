"""Sounds as model inputs: ``.wav`` files; resampling needs SciPy (``delegraph[sounds]``)."""

from __future__ import annotations

import math
import sys
import wave
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.graph.metadata import TensorMetadata
from delegraph.tools.model_call import Details, declared_shape, input_name
from delegraph.tools.quantizing import quantized

ASSUMED_RATE = 16_000
"""Samples per second if neither the model nor the user gives a rate; usual for speech."""

RATES = (1_000, 768_000)
"""Lowest and highest sample rate in hertz; the resampling filter grows with the rate."""

_WIDEST = 4  # bytes of a sample


@dataclass(frozen=True, slots=True)
class Sound:
    """Samples of a sound file, with their rate.

    Attributes:
        samples: ``[frames, channels], float32`` in [-1, 1).
        rate: number of frames per second.
        seconds: duration of the whole file; *samples* may be only its beginning.
    """

    samples: NDArray[np.float32]
    rate: int
    seconds: float


def sound_as_input(
    path: str,
    details: Details,
    described: TensorMetadata,
    sample_rate: int | None,
    note: Callable[[str], object],
) -> NDArray[Any]:
    """Read a sound and convert it to the input: resampled, mixed, cut or padded.

    Floating-point inputs get values in [-1, 1), int16 inputs the samples. Inputs with a scale get
    quantized values: int16 inputs, and int8 inputs if the metadata says that they take sounds.

    Args:
        path: a ``.wav`` file of PCM samples with 8, 16, 24 or 32 bits.
        details: an entry of ``get_input_details``: ``[n]``, ``[1, n]``, ``[1, n, channels]``. An
            unknown dimension gets the length of the whole sound. Otherwise the sound is cut, or
            padded with zeros.
        described: metadata of the input, with sample rate and channels.
        sample_rate: sample rate in hertz; None means the metadata's rate, or :data:`ASSUMED_RATE`.
        note: function that is called with a description of each conversion of the sound.

    Raises:
        ArgumentError: the file cannot be read as PCM sound, the input takes no sound, the numbers
            of channels do not fit, or SciPy is missing.
    """
    channels = described.channels or 1
    shape = _shape(details)
    frames = _frames(path, details, described, shape, channels)
    rate = sample_rate or described.sample_rate or ASSUMED_RATE
    _require_rate(input_name(details), rate)
    sound = _read(path, None if frames is None else frames / rate)
    if rate != sound.rate:
        is_assumed = not (sample_rate or described.sample_rate)
        assumed = " (assumed, as the model does not say; --sample-rate sets another)" * is_assumed
        note(f"resampled from {sound.rate} to {rate} Hz{assumed}")
    samples = _resampled(_mixed(sound.samples, channels, path, details, note), sound.rate, rate)
    samples = _of_length(samples, frames, sound.seconds, rate, note)
    return _converted(samples, details).reshape(shape)


def _shape(details: Details) -> list[int]:
    """Return the dimensions of the input *details*, with 1 for an unknown batch dimension.

    >>> _shape({"shape_signature": np.array([-1, 16000]), "shape": np.array([1, 16000])})
    [1, 16000]
    """
    shape = declared_shape(details)
    is_batch = len(shape) > 1 and shape[0] == -1 and any(dim != 1 for dim in shape[1:])
    return [1, *shape[1:]] if is_batch else shape


def _frames(
    path: str, details: Details, described: TensorMetadata, shape: list[int], channels: int
) -> int | None:
    """Return the number of frames that the input *details* takes; None if it takes any number.

    *path* is the sound's file, which errors name.

    Raises:
        ArgumentError: the input's shape or type does not fit a sound.
    """
    dtype: np.dtype[Any] = np.dtype(details["dtype"])
    has_channels = channels > 1 and len(shape) > 1 and shape[-1] == channels
    lengths: list[int] = [dim for dim in (shape[:-1] if has_channels else shape) if dim != 1]
    per_frame = 1 if has_channels else channels
    if len(lengths) != 1 or lengths[0] == 0 or (lengths[0] > 0 and lengths[0] % per_frame):
        raise ArgumentError(
            f"{path!r}: {input_name(details)} takes no sound, which needs [n] or [1, n]; compute "
            "its features first, and give them as .npy"
        )
    takes_int8 = dtype == np.int8 and described.content == "audio"
    if dtype.kind != "f" and dtype != np.int16 and not takes_int8:
        raise ArgumentError(
            f"{path!r}: {input_name(details)}: a sound can be given as float or int16"
        )
    return None if lengths[0] < 0 else lengths[0] // per_frame


def _read(path: str, seconds: float | None) -> Sound:
    """Read the first *seconds* of the file *path* and a little more; None reads the whole file.

    Raises:
        ArgumentError: the file does not exist, is no PCM sound, or has no samples.
    """
    try:
        with wave.open(path, "rb") as file:
            channels, width, rate, frames = file.getparams()[:4]
            if sys.version_info >= (3, 15) and file.getformat() == wave.WAVE_FORMAT_IEEE_FLOAT:
                raise wave.Error(f"unknown format: {wave.WAVE_FORMAT_IEEE_FLOAT}")  # as before
            _require_rate(f"sound {path!r}", rate)
            if width > _WIDEST:
                raise _unreadable(path, f"samples of {8 * width} bits; expected 8 to 32")
            wanted = frames if seconds is None else math.ceil(rate * (seconds + 0.1))
            content = file.readframes(min(wanted, frames))
    except ArgumentError:
        raise
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    except (wave.Error, EOFError, RuntimeError, ValueError) as error:
        raise _unreadable(path, _in_words(error)) from error
    content = content[: len(content) // (width * channels) * width * channels]
    if not content:
        raise _unreadable(path, "it holds no samples")
    samples = _samples(content, width).reshape(-1, channels)
    return Sound(samples, rate, frames / rate)


def _require_rate(what: str, rate: int) -> None:
    if not RATES[0] <= rate <= RATES[1]:
        raise ArgumentError(
            f"{what} has {rate} samples a second; expected {RATES[0]} to {RATES[1]}"
        )


def _samples(content: bytes, width: int) -> NDArray[np.float32]:
    """Return the PCM samples in *content*, of *width* bytes each, as numbers in [-1, 1)."""
    if width == 1:  # the only width without a sign
        unsigned = np.frombuffer(content, np.uint8).astype(np.float32)
        return (unsigned - np.float32(128)) / np.float32(128)
    if width == 3:  # the three bytes become the upper bytes
        padded = np.zeros((len(content) // 3, 4), np.uint8)
        padded[:, 1:] = np.frombuffer(content, np.uint8).reshape(-1, 3)
        content, width = padded.tobytes(), 4
    samples = np.frombuffer(content, f"<i{width}").astype(np.float64) / 2.0 ** (8 * width - 1)
    return samples.astype(np.float32)


def _mixed(
    samples: NDArray[np.float32],
    channels: int,
    path: str,
    details: Details,
    note: Callable[[str], object],
) -> NDArray[np.float32]:
    """Return *samples* with the number of *channels* that the input takes.

    Several channels are averaged to one; no other change is possible. *note* is called with a
    description of it. The file's *path* and the input's *details* are for the error.

    Raises:
        ArgumentError: the input takes several channels, and the sound has another number.
    """
    have = samples.shape[1]
    if have == channels:
        return samples
    if channels == 1:
        note(f"{have} channels mixed to 1")
        return np.asarray(samples.mean(axis=1, keepdims=True), np.float32)
    raise ArgumentError(
        f"{input_name(details)} takes a sound of {channels} channels; {path!r} has {have}"
    )


def _resampled(samples: NDArray[np.float32], rate: int, wanted: int) -> NDArray[np.float32]:
    if rate == wanted:
        return samples
    try:
        from scipy.signal import resample_poly
    except ImportError as error:
        raise ArgumentError(
            f"resampling a sound from {rate} to {wanted} Hz needs SciPy; install it with: "
            "pip install 'delegraph[sounds]'"
        ) from error
    both = math.gcd(rate, wanted)
    resampled: NDArray[Any] = resample_poly(samples, wanted // both, rate // both, axis=0)
    return resampled.astype(np.float32)


def _of_length(
    samples: NDArray[np.float32],
    frames: int | None,
    seconds: float,
    rate: int,
    note: Callable[[str], object],
) -> NDArray[np.float32]:
    """Return the first *frames* frames of *samples*, padded with zeros; all if *frames* is None.

    *note* is called with a description of the change.
    """
    if frames is None:
        return samples
    if seconds * rate >= frames + 1:  # smaller differences come from rounding
        note(f"the first {frames / rate:.4g} of {seconds:.4g} s")
    if len(samples) < frames:
        note(f"zeros after its {seconds:.4g} s, up to {frames / rate:.4g} s")
    filled = np.zeros((frames, samples.shape[1]), np.float32)
    filled[: len(samples)] = samples[:frames]
    return filled


def _converted(samples: NDArray[np.float32], details: Details) -> NDArray[Any]:
    dtype = np.dtype(details["dtype"])
    if dtype.kind == "f":
        return samples.astype(dtype)
    if dtype == np.int16 and not details["quantization"][0]:
        return np.clip(np.rint(samples * 32768), -32768, 32767).astype(dtype)
    return quantized(samples, details)


def _in_words(error: Exception) -> str:
    reason = str(error) or "it ends too early"
    if "unknown format" in reason:
        return f"{reason}, which is no PCM; save it as 16-bit PCM"
    return reason


def _unreadable(path: str, reason: str) -> ArgumentError:
    return ArgumentError(f"sound {path!r} cannot be read: {reason}")
