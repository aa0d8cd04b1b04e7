"""Cases of diagonals and bands."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph_flex.data_types import DataType
from flex_cases import Case, one

FLOAT = DataType.FLOAT32
ALIGNS = (b"LEFT_RIGHT", b"RIGHT_LEFT", b"LEFT_LEFT", b"RIGHT_RIGHT")
BANDS = ([0, 0], [-2, 2], [-1, 0], [0, 2], [1, 3], [-2, -1], [2], [-1])


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(7)
    for type in (FLOAT, DataType.INT64, DataType.COMPLEX128, DataType.BOOL, DataType.BFLOAT16):
        x = rng.integers(0, 99, (2, 3, 4)).astype(type.dtype)
        yield one("MatrixDiagPart", x, T=type)
        yield one("MatrixSetDiag", x, x[:, :, 0], T=type)
        yield one("MatrixDiag", x, T=type)
        for lower, upper in ((-1, 0), (0, 0), (1, 2), (3, -1), (-1, -1)):
            yield one(
                "MatrixBandPart", x, np.int64(lower), np.int64(upper), T=type,
                Tindex=DataType.INT64,
            )  # fmt: skip
        if type not in (DataType.BOOL, DataType.BFLOAT16):
            yield one("Diag", x[0], T=type)
            yield one("DiagPart", x[0, :, :3].reshape(1, 3, 1, 3), T=type)
    x = rng.normal(0, 9, (2, 3, 4)).astype(np.float32)
    for align in ALIGNS:
        yield from _bands(x, align)
    none = np.zeros((2, 0, 3), np.float32)
    yield one("MatrixDiagPart", none, T=FLOAT)
    yield one("MatrixDiag", none[0], T=FLOAT)
    yield one("Diag", none[0], T=FLOAT)


def _bands(x: np.ndarray, align: bytes) -> Iterator[Case]:
    pad = np.float32(-7)
    versions = ("V2", "V3") if align == b"LEFT_LEFT" else ("V3",)
    for version in versions:
        attrs = {"T": FLOAT, "align": align} if version == "V3" else {"T": FLOAT}
        for numbers in BANDS:
            k = np.array(numbers[0] if len(numbers) == 1 else numbers, np.int32)
            yield one(f"MatrixDiagPart{version}", x, k, pad, **attrs)
            low, high = numbers[0], numbers[-1]
            longest = max(min(3 - max(0, -k), 4 - max(0, k)) for k in range(low, high + 1))
            shape = (2, longest) if low == high else (2, high - low + 1, longest)
            diagonal = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
            yield one(f"MatrixSetDiag{version}", x, diagonal, k, **attrs)
            for rows, columns in ((3, 4), (-1, -1)):
                yield one(
                    f"MatrixDiag{version}", diagonal, k, np.int32(rows), np.int32(columns), pad,
                    **attrs,
                )  # fmt: skip
