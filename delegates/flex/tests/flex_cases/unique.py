"""Cases of operators on values without repetitions, and on sets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from flex_cases import Case, one, strings, type_of

INDICES = (DataType.INT32, DataType.INT64)
WORDS = strings([b"b", b"a", b"b", b"", b"c", b"a"])


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(12)
    vectors = [
        rng.integers(-3, 3, 9).astype(dtype)
        for dtype in (np.float32, np.float64, np.int8, np.uint16, np.int32, np.int64)
    ]
    vectors += [np.array([np.nan, 1, np.nan, 0.0, -0.0, np.inf], np.float32), WORDS, WORDS[:0]]
    vectors += [np.array([True, False, True]), np.zeros(0, np.float32)]
    axis = {"Taxis": DataType.INT64}
    for x in vectors:
        type = DataType.of(type_of(x))
        for index in INDICES:
            number = TensorType[index.name]
            attrs = {"T": type, "out_idx": index}
            two, three = (type_of(x), number), (type_of(x), number, number)
            none = np.zeros(0, np.int64)
            yield one("Unique", x, out=two, **attrs)
            yield one("UniqueWithCounts", x, out=three, **attrs)
            yield one("UniqueV2", x, none, out=two, **attrs, **axis)
            yield one("UniqueWithCountsV2", x, none + 0, out=three, **attrs, **axis)
            if type is not DataType.BOOL:
                yield one("ListDiff", x, x[1:3], out=two, **attrs)
    matrix = np.array([[1, 2, 1], [0, 2, 0], [1, 2, 1], [0, 1, 0]], np.float32)
    for x in (matrix, np.stack([matrix, matrix * 2]), matrix[:0], matrix[:, :0]):
        for along in range(-x.ndim, x.ndim):
            out = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT32)
            yield one(
                "UniqueWithCountsV2", x, np.array([along]), T=DataType.FLOAT32,
                out_idx=DataType.INT32, out=out, **axis,
            )  # fmt: skip
    words = WORDS.reshape(3, 2)[[0, 1, 0]]
    out = (TensorType.STRING, TensorType.INT32)
    yield one(
        "UniqueV2", words, np.array([0]), T=DataType.STRING, out_idx=DataType.INT32, out=out, **axis
    )
