"""Cases of discrete Fourier transforms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from flex_cases import Case, one

TYPES = (
    (DataType.FLOAT32, DataType.COMPLEX64, 1e-6),
    (DataType.FLOAT64, DataType.COMPLEX128, 1e-13),
)
RANKS = {"": 1, "2D": 2, "3D": 3}


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(6)
    for real, wave, tolerance in TYPES:
        x = rng.normal(0, 1, (2, 3, 4, 5)).astype(real.dtype)
        z = (x + 1j * rng.normal(0, 1, x.shape)).astype(wave.dtype)
        for ending, rank in RANKS.items():
            for op in ("FFT", "IFFT"):
                yield one(op + ending, z, Tcomplex=wave, tolerance=tolerance)
                yield one(op + ending, z[0, 0, :0] if rank < 3 else z[:0], Tcomplex=wave)
            for cut in range(3):
                n = np.array([size - cut for size in (3, 4, 5)[-rank:]], np.int32)
                both = {"Treal": real, "Tcomplex": wave, "tolerance": tolerance}
                yield one(f"RFFT{ending}", x, n, out=TensorType[wave.name], **both)
                n[-1] = 8 - cut  # of five values, or four
                yield one(f"IRFFT{ending}", z, n, out=TensorType[real.name], **both)
        for n in (1, 2):
            length = np.array([n], np.int32)
            yield one(
                "IRFFT", z, length, Treal=real, Tcomplex=wave, out=TensorType[real.name],
                tolerance=tolerance,
            )  # fmt: skip
            yield one(
                "RFFT", x, length, Treal=real, Tcomplex=wave, out=TensorType[wave.name],
                tolerance=tolerance,
            )  # fmt: skip
        none = np.zeros((0, 3), real.dtype)
        yield one(
            "RFFT", none, np.array([3], np.int32), Treal=real, Tcomplex=wave,
            out=TensorType[wave.name],
        )  # fmt: skip
