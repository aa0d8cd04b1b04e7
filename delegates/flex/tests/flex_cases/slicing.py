"""Cases of taking parts of arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from delegraph_flex.numpy_executor.registry import ALL
from flex_cases import Case, one
from flex_cases.shapes import sample

_F32, _I32, _I64 = DataType.FLOAT32, DataType.INT32, DataType.INT64
_FLOAT32 = TensorType.FLOAT32


def cases() -> Iterator[Case]:
    yield from _slices()
    yield from _strided_slices()
    yield from _strided_updates()
    yield from _splits()
    yield from _reversals()


def _slices() -> Iterator[Case]:
    for type in sorted(ALL):
        x = sample(type, (3, 4))
        yield one("Slice", x, np.int32([1, 0]), np.int32([2, 3]), T=type, Index=_I32)
        yield one(
            "StridedSlice", x, np.int32([0, 1]), np.int32([3, 4]), np.int32([2, 1]), T=type,
            Index=_I32,
        )  # fmt: skip
    x = sample(_F32, (3, 4))
    for begin, size in (([0, 0], [-1, -1]), ([3, 1], [0, -1]), ([2, 4], [-1, 0]), ([1, 1], [1, 1])):
        yield one("Slice", x, np.array(begin), np.array(size), T=_F32, Index=_I64)
    none = np.zeros(0, np.int32)
    yield one("Slice", np.float32(1), none, none, T=_F32, Index=_I32)
    yield one("Slice", sample(DataType.STRING, ()), none, none, T=DataType.STRING, Index=_I32)


# begin, end, strides, then the masks that are not 0: begin b, end e, ellipsis l, new n, shrink s.
_STRIDED: list[tuple[list[int], list[int], list[int], dict[str, int]]] = [
    ([1], [3], [1], {}),
    ([0, 1, 0], [3, 4, 2], [2, 1, 1], {}),
    ([-2, -3], [-1, 9], [1, 1], {}),
    ([-9, 9], [9, -9], [1, -1], {}),
    ([2, 3, 1], [-9, -9, -9], [-1, -2, -1], {}),
    ([2, 1], [0, 3], [-1, 1], {"b": 1, "e": 2}),
    ([0, 0, 0], [0, 0, 0], [-1, 2, 1], {"b": 7, "e": 7}),
    ([1], [2], [1], {"s": 1}),
    ([-1, 0, -2], [0, 0, 0], [1, 1, 1], {"s": 5, "b": 2, "e": 2}),
    ([0, 1, 1], [1, 2, 2], [1, 1, 1], {"s": 7}),
    ([0, 0], [0, 1], [1, 1], {"l": 1}),
    ([1, 0, 0], [2, 0, 1], [1, 1, 1], {"l": 2, "s": 1}),
    ([0, 0, 1], [0, 0, 2], [1, 1, 1], {"l": 1, "s": 4, "n": 2}),
    ([0, 0], [0, 0], [1, 1], {"n": 1, "b": 2, "e": 2}),
    ([0, 1, 0, 0], [0, 2, 0, 2], [1, 1, 1, 1], {"n": 5, "s": 3}),
    ([0, 0, 0], [0, 0, 0], [1, 1, 1], {"n": 4, "l": 2}),
    ([1], [2], [1], {"s": 1, "b": 1, "e": 1}),
    ([3, 0], [3, 2], [1, 1], {}),
    ([], [], [], {}),
    ([1, 1, 0, 0], [2, 2, 0, 1], [1, 1, 1, 1], {"s": 3, "l": 4}),
]
_MASKS = {"b": "begin", "e": "end", "l": "ellipsis", "n": "new_axis", "s": "shrink_axis"}


def _strided_slices() -> Iterator[Case]:
    x = sample(_F32, (3, 4, 2))
    for i, (begin, end, strides, given) in enumerate(_STRIDED):
        masks = {f"{name}_mask": given.get(key, 0) for key, name in _MASKS.items()}
        dtype, type = ((np.int32, _I32), (np.int64, _I64), (np.int16, DataType.INT16))[i % 3]
        where = [np.array(part, dtype) for part in (begin, end, strides)]
        yield one("StridedSlice", x, *where, T=_F32, Index=type, **masks)
        yield one("StridedSlice", x[:, :, :0], *where[:0], *_whole(dtype), T=_F32, Index=type)


def _whole(dtype: type) -> list[np.ndarray]:
    return [np.array(part, dtype) for part in ([0], [2], [1])]


def _strided_updates() -> Iterator[Case]:
    x = sample(_F32, (3, 4, 2))
    for i in (0, 1, 4, 6, 7, 8, 12, 13):
        begin, end, strides, given = _STRIDED[i]
        masks = {f"{name}_mask": given.get(key, 0) for key, name in _MASKS.items()}
        where = [np.int32(part) for part in (begin, end, strides)]
        index: list[object] = []
        for k, (first, last, stride) in enumerate(zip(begin, end, strides, strict=True)):
            bits = {key for key, mask in given.items() if mask >> k & 1}
            if "l" in bits:
                index.append(...)
            elif "n" in bits:
                index.append(None)
            elif "s" in bits:
                index.append(first)
            else:
                ends = (None if "b" in bits else first, None if "e" in bits else last)
                index.append(slice(*ends, stride))
        value = -x[tuple(index)] - 1
        yield one("TensorStridedSliceUpdate", x, *where, value, T=_F32, Index=_I32, **masks)
        shape = np.int32(x.shape)
        yield one(
            "StridedSliceGrad", shape, *where, value, T=_F32, Index=_I32, out=_FLOAT32, **masks
        )


def _splits() -> Iterator[Case]:
    for type in sorted(ALL):
        x = sample(type, (4, 3))
        out = [TensorType[type.name]]
        yield one("Split", np.int32(0), x, T=type, num_split=2, out=out * 2)
        yield one("Unpack", x, T=type, num=3, axis=1, out=out * 3)
    x = sample(_F32, (2, 6, 3))
    for axis, count in ((1, 3), (-2, 2), (2, 1), (-1, 3)):
        yield one("Split", np.int32(axis), x, T=_F32, num_split=count, out=[_FLOAT32] * count)
    splits = ((1, [2, 1, 3]), (-1, [-1, 1]), (1, [0, -1, 6]), (0, [2]), (2, [1, 1, 1]))
    for axis, sizes in splits:
        for dtype, type in ((np.int32, _I32), (np.int64, _I64)):
            yield one(
                "SplitV", x, np.array(sizes, dtype), np.int32(axis), T=_F32, Tlen=type,
                num_split=len(sizes), out=[_FLOAT32] * len(sizes),
            )  # fmt: skip
    for axis in (0, 2, -1, -3):
        count = x.shape[axis]
        yield one("Unpack", x, T=_F32, num=count, axis=axis, out=[_FLOAT32] * count)
    yield one("Unpack", x[0, 0], T=_F32, num=3, out=[_FLOAT32] * 3, name="Unpack-vector")
    yield one("Unpack", x[:, :0], T=_F32, num=2, out=[_FLOAT32] * 2, name="Unpack-empty")
    text = sample(DataType.STRING, (2,))
    yield one("Unpack", text, T=DataType.STRING, num=2, out=[TensorType.STRING] * 2)


def _reversals() -> Iterator[Case]:
    for type in sorted(ALL):
        x = sample(type, (2, 3))
        yield one("ReverseV2", x, np.int32([1]), T=type, Tidx=_I32)
        yield one("Reverse", x, np.array([True, False]), T=type)
        yield one("ReverseSequence", x, np.int64([2, 3]), T=type, Tlen=_I64, seq_dim=1, batch_dim=0)
    x = sample(_F32, (3, 4, 2))
    for axes in ([], [0, 2], [-2], [0, 1, -1]):
        yield one("ReverseV2", x, np.array(axes, np.int64), T=_F32, Tidx=_I64)
    for flags in ([True] * 3, [False] * 3, [False, True, True]):
        yield one("Reverse", x, np.array(flags), T=_F32)
    yield one("Reverse", np.float32(1), np.zeros(0, bool), T=_F32)
    for seq, batch, lengths in ((1, 0, [4, 0, 3]), (0, 1, [3, 1, 2, 0]), (2, 1, [2, 1, 0, 2])):
        yield one(
            "ReverseSequence", x, np.int32(lengths), T=_F32, Tlen=_I32, seq_dim=seq, batch_dim=batch
        )
