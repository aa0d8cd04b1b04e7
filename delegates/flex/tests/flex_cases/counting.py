"""Cases of operators that count."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from flex_cases import Case, one

TYPES = (DataType.INT32, DataType.INT64, DataType.FLOAT32, DataType.FLOAT64)


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(10)
    values = rng.integers(0, 9, (3, 5)).astype(np.int32)
    for type in TYPES:
        out = TensorType[type.name]
        weights = rng.integers(0, 99, values.shape).astype(type.dtype) / type.dtype.type(1)
        weights = weights.astype(type.dtype)
        for some in (weights, weights[:0, 0]):
            for size in (0, 6, 12):
                yield one("Bincount", values, np.int32(size), some, T=type, out=out)
            for index in (DataType.INT32, DataType.INT64):
                for binary in (False, True):
                    attrs = {"T": type, "Tidx": index, "binary_output": binary, "out": out}
                    n, size = values.astype(index.dtype), np.array(7, index.dtype)
                    yield one("DenseBincount", n, size, some, **attrs)
                    row = some[0] if some.size else some
                    yield one("DenseBincount", n[0], size, row, **attrs)
                    yield from _of_rows(n, size, some, attrs)
    for type in TYPES:
        points = np.array([-3, 0, 0.5, 1, 2, 4.9, 5, 77]).astype(type.dtype)
        limits = np.array([0, 5], type.dtype)
        for bins in (1, 5, 7):
            for dtype in (DataType.INT32, DataType.INT64):
                yield one(
                    "HistogramFixedWidth", points, limits, np.int32(bins), T=type, dtype=dtype,
                    out=TensorType[dtype.name],
                )  # fmt: skip


def _of_rows(
    n: np.ndarray, size: np.ndarray, weights: np.ndarray, attrs: dict[str, object]
) -> Iterator[Case]:
    flat, parts = n[:2].reshape(-1), weights[:2].reshape(-1)
    rows = np.stack(np.divmod(np.arange(10), 5), axis=1)
    yield one("SparseBincount", rows, flat, np.array([4, 5]), size, parts, **attrs)
    yield one("SparseBincount", rows[:, :1] * 5, flat, np.array([9]), size, parts, **attrs)
    splits = np.array([0, 3, 3, 8, 10])
    yield one("RaggedBincount", splits, flat, size, parts, **attrs)
