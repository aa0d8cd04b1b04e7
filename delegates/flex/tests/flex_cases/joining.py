"""Cases of joining arrays and of making larger ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from delegraph_flex.numpy_executor.registry import ALL
from flex_cases import Case, one
from flex_cases.shapes import sample

_F32, _I32, _I64 = DataType.FLOAT32, DataType.INT32, DataType.INT64


def cases() -> Iterator[Case]:
    yield from _joins()
    yield from _pads()
    yield from _repeats()
    yield from _fills()


def _joins() -> Iterator[Case]:
    for type in sorted(ALL):
        x, y = sample(type, (2, 3)), sample(type, (2, 1))
        out = TensorType[type.name]
        yield one("ConcatV2", x, y, np.int32(1), N=2, T=type, Tidx=_I32)
        yield one("Concat", np.int32(1), x, y, N=2, T=type, out=out)
        yield one("Pack", x, x[::-1].copy(), N=2, T=type, axis=1)
        yield one("ParallelConcat", x[:1], x[1:], N=2, T=type, shape=(2, 3))
    x = sample(_F32, (2, 3, 1))
    for axis in (0, 1, 2, -1, -3):
        index = (np.int32, np.int64)[axis % 2](axis)
        yield one("ConcatV2", x, x, x, index, N=3, T=_F32, Tidx=(_I32, _I64)[axis % 2])
        yield one("Concat", np.int32(axis), x, x, N=2, T=_F32, out=TensorType.FLOAT32)
    yield one("ConcatV2", x, x[:, :0], np.int32(1), N=2, T=_F32, Tidx=_I32, name="ConcatV2-empty")
    for axis in (0, 1, 3, -1, -2, -4):
        yield one("Pack", x, -x, N=2, T=_F32, axis=axis)
    for axis in (0, -1):
        yield one("Pack", np.float32(1), np.float32(2), N=2, T=_F32, axis=axis, name="Pack-scalars")
        text = sample(DataType.STRING, ())
        yield one("Pack", text, text, N=2, T=DataType.STRING, axis=axis, name="Pack-strings")
    shapes = [np.int32(shape) for shape in ([2, 3, 4], [2, 1, 4], [2, 5, 4])]
    for axis in (1, -2):
        out = [TensorType.INT32] * 3
        yield one("ConcatOffset", np.int32(axis), *shapes, N=3, shape_type=_I32, out=out)


def _pads() -> Iterator[Case]:
    for type in sorted(ALL):
        x = sample(type, (2, 3))
        paddings = np.int32([[0, 1], [2, 0]])
        yield one("Pad", x, paddings, T=type, Tpaddings=_I32)
        yield one("PadV2", x, paddings, x[0, 1:2].reshape(()), T=type, Tpaddings=_I32)
        for mode in (b"REFLECT", b"SYMMETRIC"):
            if type is not DataType.STRING:  # TensorFlow copies only the inner part of them
                yield one("MirrorPad", x, paddings, T=type, Tpaddings=_I32, mode=mode)
    x = sample(_F32, (1, 3, 2))
    for paddings in ([[0, 0]] * 3, [[1, 1], [0, 2], [3, 0]]):
        yield one("Pad", x, np.array(paddings), T=_F32, Tpaddings=_I64)
        yield one("PadV2", x[:0], np.array(paddings), np.float32(7), T=_F32, Tpaddings=_I64)
    for mode, paddings in (
        (b"REFLECT", [[0, 0], [2, 2], [1, 0]]),
        (b"SYMMETRIC", [[1, 1], [3, 2], [0, 2]]),
    ):
        yield one("MirrorPad", x, np.array(paddings), T=_F32, Tpaddings=_I64, mode=mode)
        dy = np.arange(np.prod(np.array(x.shape) + np.sum(paddings, 1)), dtype=np.float32)
        dy = dy.reshape(np.array(x.shape) + np.sum(paddings, 1))
        yield one("MirrorPadGrad", dy, np.array(paddings), T=_F32, Tpaddings=_I64, mode=mode)
    yield one("Pad", np.float32(3), np.zeros((0, 2), np.int32), T=_F32, Tpaddings=_I32)


def _repeats() -> Iterator[Case]:
    for type in sorted(ALL):
        x = sample(type, (2, 1))
        if type is not DataType.UINT16:  # TensorFlow has no kernel
            yield one("Tile", x, np.int32([2, 3]), T=type, Tmultiples=_I32)
        yield one("BroadcastTo", x, np.int32([2, 2, 3]), T=type, Tidx=_I32)
    x = sample(_F32, (2, 1, 3))
    for multiples in ([1, 1, 1], [3, 2, 2], [0, 1, 2]):
        yield one("Tile", x, np.array(multiples), T=_F32, Tmultiples=_I64)
    yield one("Tile", np.float32(1), np.zeros(0, np.int32), T=_F32, Tmultiples=_I32)
    for shape in ([2, 1, 3], [2, 4, 3], [1, 2, 0, 3]):
        yield one("BroadcastTo", x, np.array(shape), T=_F32, Tidx=_I64)
    yield one("BroadcastTo", np.float32(5), np.int32([]), T=_F32, Tidx=_I32)
    yield one("BroadcastTo", np.float32(5), np.int32([2, 0]), T=_F32, Tidx=_I32)


def _fills() -> Iterator[Case]:
    for type in sorted(ALL):
        value, out = sample(type, (1,)).reshape(()), TensorType[type.name]
        yield one("Fill", np.int32([2, 3]), value, T=type, index_type=_I32, out=out)
        yield one("Fill", np.zeros(0, np.int64), value, T=type, index_type=_I64, out=out)
        yield one("ZerosLike", sample(type, (2, 2)), T=type)
        yield one("Empty", np.int32([2, 2]), dtype=type, init=True, out=out)
        if type is not DataType.STRING:
            yield one("OnesLike", sample(type, (2, 2)), T=type)
    empty = TensorType.FLOAT32
    yield one("Fill", np.int32([0, 3]), np.float32(1), T=_F32, index_type=_I32, out=empty)
    yield one("ZerosLike", np.float32(3), T=_F32, name="ZerosLike-scalar")
