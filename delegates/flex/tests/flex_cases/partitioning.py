"""Cases of operators that deal rows out and put them together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph_flex.data_types import DataType
from flex_cases import Case, one, strings, type_of


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(15)
    floats = rng.normal(0, 9, (4, 2)).astype(np.float32)
    words = strings([[b"a", b"b"], [b"cd", b""], [b"e", b"f"], [b"g", b"h"]])
    for x in (floats, floats.astype(np.int64), floats > 0, floats * np.complex64(1j), words):
        type, out = DataType.of(type_of(x)), type_of(x)
        rows, elements = rng.integers(0, 3, 4), rng.integers(0, 3, (4, 2))
        for numbers in (rows, elements):
            partitions = numbers.astype(np.int32)
            for count in (3, 5):
                yield one(
                    "DynamicPartition", x, partitions, num_partitions=count, T=type,
                    out=(out,) * count,
                )  # fmt: skip
        yield one(
            "DynamicPartition", x[:0], rows[:0].astype(np.int32), num_partitions=2, T=type,
            out=(out,) * 2,
        )  # fmt: skip
        first, second = np.array([[3, 0], [1, 4]], np.int32), np.int32(2)
        for op in ("DynamicStitch", "ParallelDynamicStitch"):
            yield one(op, first[0] // 2, second, x[:2], x[3], N=2, T=type, out=out)
            yield one(op, first, second, x[2:], x[:1, 0].reshape(()), N=2, T=type, out=out)
    twice = np.array([1, 0, 1], np.int32)
    yield one("DynamicStitch", twice, floats[:3], N=1, T=DataType.FLOAT32, out=type_of(floats))
    none = np.zeros(0, np.int32)
    yield one("DynamicStitch", none, floats[:0], N=1, T=DataType.FLOAT32, out=type_of(floats))
