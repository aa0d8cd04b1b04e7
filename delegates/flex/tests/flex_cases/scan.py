"""Cases of running sums and products, of Roll and Cross."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph_flex.data_types import DataType
from flex_cases import Case, one, strings

TYPES = {
    DataType.FLOAT32: 1e-6,
    DataType.FLOAT64: 1e-13,
    DataType.COMPLEX64: 1e-6,
    DataType.INT32: 0.0,
    DataType.INT8: 0.0,
    DataType.UINT16: 0.0,
    DataType.FLOAT16: 2e-3,
    DataType.BFLOAT16: 2e-2,
}


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(8)
    for type, tolerance in TYPES.items():
        x = rng.uniform(0.5, 3, (2, 4, 3)) if tolerance else rng.integers(0, 9, (2, 4, 3))
        x = x.astype(type.dtype)
        for exclusive in (False, True):
            for reverse in (False, True):
                for axis in (0, 1, -1):
                    attrs = {
                        "T": type, "Tidx": DataType.INT32, "exclusive": exclusive,
                        "reverse": reverse, "tolerance": tolerance,
                    }  # fmt: skip
                    yield one("Cumsum", x, np.int32(axis), **attrs)
                    yield one("Cumprod", x, np.int32(axis), **attrs)
                    if type.name.endswith(("T32", "T64", "T16")) and tolerance:
                        yield one("CumulativeLogsumexp", x, np.int32(axis), **attrs)
        yield one(
            "Cumsum", x[:, :0], np.int64(1), T=type, Tidx=DataType.INT64, exclusive=True,
            reverse=False,
        )  # fmt: skip
    edge = np.array([0, 1, -np.inf, 200, -np.inf, 3], np.float32)
    for exclusive in (False, True):
        yield one(
            "CumulativeLogsumexp", edge, np.int32(0), T=DataType.FLOAT32, Tidx=DataType.INT32,
            exclusive=exclusive, reverse=False, tolerance=1e-6,
        )  # fmt: skip
    yield from _roll(rng)
    for type in (DataType.FLOAT32, DataType.INT32, DataType.UINT8, DataType.BFLOAT16):
        a, b = (rng.integers(0, 12, (2, 4, 3)).astype(type.dtype) for _ in range(2))
        yield one("Cross", a, b, T=type)


def _roll(rng: np.random.Generator) -> Iterator[Case]:
    index = {"Tshift": DataType.INT32, "Taxis": DataType.INT64}
    x = rng.normal(0, 1, (2, 3, 4)).astype(np.float32)
    for shift, axis in ((1, 0), (-7, -1), (0, 1), ([1, 2, 5], [0, 1, 1]), ([3], [-2]), ([], [])):
        yield one(
            "Roll", x, np.array(shift, np.int32), np.array(axis, np.int64), T=DataType.FLOAT32,
            **index,
        )  # fmt: skip
    words = strings([b"a", b"b", b"c"])
    yield one("Roll", words, np.int32(1), np.int64(0), T=DataType.STRING, **index)
    yield one("Roll", x[:, :0], np.int32(1), np.int64(1), T=DataType.FLOAT32, **index)
