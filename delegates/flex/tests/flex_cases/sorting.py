"""Cases of operators that order numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from flex_cases import Case, one, type_of

FLOAT, INT, LONG = DataType.FLOAT32, DataType.INT32, DataType.INT64
TYPES = (
    FLOAT, DataType.FLOAT64, DataType.FLOAT16, DataType.BFLOAT16, INT, DataType.UINT8,
    DataType.INT8, DataType.UINT64,
)  # fmt: skip


def cases() -> Iterator[Case]:
    yield from _isotonic()
    rng = np.random.default_rng(11)
    for type in TYPES:
        x = rng.integers(0, 200, (2, 3, 8)).astype(type.dtype)  # with equal ones
        x[..., 0] = x[..., 5]
        value = type_of(x)
        for k in (0, 1, 3, 8):
            for index in (INT, LONG, DataType.INT16):
                yield one(
                    "TopKV2", x, np.array(k, index.dtype), T=type, Tk=index, index_type=index,
                    sorted=True, out=(value, TensorType[index.name]),
                )  # fmt: skip
        for n in (0, 2, 7):
            for reverse in (False, True):
                yield one("NthElement", x, np.int32(n), T=type, reverse=reverse)
    long = rng.integers(-50, 50, (2, 400)).astype(np.float32)  # 3 kB
    for k in (1, 5, 399):
        yield one(
            "TopKV2", long, np.int32(k), T=FLOAT, Tk=INT, index_type=INT, sorted=True,
            out=(TensorType.FLOAT32, TensorType.INT32),
        )  # fmt: skip
    yield from _places(rng)


def _places(rng: np.random.Generator) -> Iterator[Case]:
    scores = rng.normal(0, 1, (6, 5)).astype(np.float32)
    scores[1, 2], scores[2, 0], scores[3, 1], scores[4] = np.inf, np.nan, -np.inf, 1
    for targets in ([0, 1, 2, 3, 4, 0], [4, 2, 0, 1, 1, 7], [-1, 0, 1, 0, 3, 5]):
        for type in (INT, LONG):
            wanted = np.array(targets, type.dtype)
            for k in (1, 2, 5):
                out = TensorType.BOOL
                yield one("InTopK", scores, wanted, T=type, k=k, out=out)
                yield one("InTopKV2", scores, wanted, np.array(k, type.dtype), T=type, out=out)
    for type in (FLOAT, INT, LONG, DataType.FLOAT64, DataType.UINT8):
        ordered = np.sort(rng.integers(0, 9, (2, 7)), axis=1).astype(type.dtype)
        values = rng.integers(0, 11, (2, 4)).astype(type.dtype)
        for index in (INT, LONG):
            for op in ("LowerBound", "UpperBound"):
                yield one(op, ordered, values, T=type, out_type=index, out=TensorType[index.name])


def _isotonic() -> Iterator[Case]:
    both = (TensorType.FLOAT32, TensorType.INT32)
    x = np.random.default_rng(3).integers(-5, 5, (4, 9)).astype(np.float32)
    for part in (x, x[0], x[:0], x[:, :0], x.reshape(2, 2, 9), -np.sort(x)):
        yield one("IsotonicRegression", part, T=FLOAT, output_dtype=FLOAT, out=both, tolerance=1e-6)
    wide = (TensorType.FLOAT64, TensorType.INT32)
    attrs = {"T": DataType.FLOAT64, "output_dtype": DataType.FLOAT64}
    yield one("IsotonicRegression", x.astype(np.float64), **attrs, out=wide, tolerance=1e-12)
