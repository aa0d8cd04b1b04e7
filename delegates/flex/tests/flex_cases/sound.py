"""Cases of sound."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from delegraph import TensorType
from flex_cases import Case, one, strings


def wav(
    channels: int, samples: bytes, extra: bytes = b"", before: bytes = b"", after: bytes = b""
) -> Any:
    """Return a WAV file at 8 kHz."""
    layout = struct.pack("<HHIIHH", 1, channels, 8000, 16000 * channels, 2 * channels, 16) + extra
    body = b"WAVE" + before + b"fmt " + struct.pack("<I", len(layout)) + layout + after
    body += b"data" + struct.pack("<I", len(samples)) + samples
    return strings(b"RIFF" + struct.pack("<I", len(body)) + body)


def cases() -> Iterator[Case]:
    yield from _spectra()
    yield from _coefficients()
    yield from _files()


def _spectra() -> Iterator[Case]:
    x = np.random.default_rng(1).normal(0, 1, (90, 2)).astype(np.float32)
    for size, stride in ((16, 8), (20, 7), (90, 1), (91, 1), (2, 40)):
        for squared in (False, True):
            yield one(
                "AudioSpectrogram",
                x,
                window_size=size,
                stride=stride,
                magnitude_squared=squared,
                tolerance=3e-7,
            )


def _coefficients() -> Iterator[Case]:
    rng = np.random.default_rng(2)
    x = np.square(rng.normal(0, 1, (2, 3, 65))).astype(np.float32)
    x[0, 0] = 0
    for attrs in (
        {},
        {"lower_frequency_limit": 0.0, "upper_frequency_limit": 3000.0},
        {"filterbank_channel_count": 12, "dct_coefficient_count": 12},
        {"filterbank_channel_count": 60, "dct_coefficient_count": 5},
        {"upper_frequency_limit": 9000.0},
    ):
        yield one("Mfcc", x, np.int32(16000), **attrs, tolerance=1e-6)
    yield one("Mfcc", x, np.int32(8000), tolerance=1e-6)
    yield one("Mfcc", x[:, :0], np.int32(16000))


def _files() -> Iterator[Case]:
    samples = (np.arange(-4, 4, dtype=np.int16) * 8000).tobytes()
    both = (TensorType.FLOAT32, TensorType.INT32)
    for channels in (-1, 1, 3):
        for count in (-1, 2, 9, 0):
            wanted = {"desired_channels": channels, "desired_samples": count}
            yield one("DecodeWav", wav(2, samples), **wanted, out=both)
    chunk = b"JUNK\x03\0\0\0abc"
    for file in (
        wav(1, samples, extra=b"\0\0"),
        wav(1, samples, before=chunk),
        wav(1, samples, after=b"LIST\x04\0\0\0abcd"),
        wav(1, b""),
        wav(4, samples),
    ):
        yield one("DecodeWav", file, out=both)
    sound = np.array(
        [[0, 0.5], [-1, 1], [2, -2], [0.1, 0.2], [-0.3, -1e-5], [1.5 / 32768, -1.5 / 32768]],
        np.float32,
    )
    for part in (sound, sound[:0], sound[:, :1]):
        yield one("EncodeWav", part, np.int32(44100), out=TensorType.STRING)
