"""Cases of counting."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from delegraph_flex.numpy_executor.registry import ALL, FLOATS
from flex_cases import Case, one
from flex_cases.arithmetic import SPECIAL, TOLERANCE
from flex_cases.shapes import sample

_F32, _I32, _I64 = DataType.FLOAT32, DataType.INT32, DataType.INT64


def cases() -> Iterator[Case]:
    yield from _ranges()
    yield from _one_hots()
    values = np.array([*SPECIAL, 0.5, 2, 2.5, 9], np.float32)
    for type in (_F32, DataType.FLOAT64, _I32, _I64):
        x = values if type in FLOATS else values[7:]
        for boundaries in ([0.0, 0.5, 2.0], [0.1], []):
            yield one(
                "Bucketize", x.astype(type.dtype), T=type, boundaries=boundaries,
                out=TensorType.INT32,
            )  # fmt: skip


def _ranges() -> Iterator[Case]:
    whole = ((0, 7, 3), (0, 6, 3), (5, -5, -4), (3, 3, 1), (-2, 3, 1), (1, 2, 9))
    for type in (_I32, _I64):
        for numbers in whole:
            yield one("Range", *(np.array(number, type.dtype) for number in numbers), Tidx=type)
    for type in sorted(FLOATS):
        for numbers in (*whole, (0, 1, 0.1), (5, 1, -0.7), (0, 1, 0.3)):
            yield one(
                "Range", *(np.array(number, type.dtype) for number in numbers), Tidx=type,
                tolerance=TOLERANCE[type],
            )  # fmt: skip
    for type in (_F32, DataType.FLOAT64):
        for start, stop, num in ((0, 1, 7), (3, -2, 4), (5, 9, 1), (1, 1, 3), (0.1, 0.7, 2)):
            ends = (np.array(end, type.dtype) for end in (start, stop))
            yield one(
                "LinSpace", *ends, np.int32(num), T=type, Tidx=_I32, tolerance=TOLERANCE[type]
            )


def _one_hots() -> Iterator[Case]:
    indices = [[0, 2, 1], [3, -1, 9]]
    for type in sorted(ALL):
        off, on = (value.reshape(()) for value in np.split(sample(type, (2,)), 2))
        yield one(
            "OneHot", np.array(indices), np.int32(4), on, off, T=type, TI=_I64, axis=-1,
            out=TensorType[type.name],
        )  # fmt: skip
    on, off = np.float32(1), np.float32(0)
    for type in (DataType.UINT8, DataType.INT8, _I32, _I64):
        x = np.array(indices).astype(type.dtype)
        for axis in (-1, 0, 1, 2):
            yield one(
                "OneHot", x, np.int32(3), on, off, T=_F32, TI=type, axis=axis,
                out=TensorType.FLOAT32,
            )  # fmt: skip
    for x, depth in ((np.int32(1), 3), (np.int32([1, 0]), 0), (np.zeros((0, 2), np.int32), 2)):
        yield one("OneHot", x, np.int32(depth), on, off, T=_F32, TI=_I32, out=TensorType.FLOAT32)
