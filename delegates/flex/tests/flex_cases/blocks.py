"""Cases of moving blocks of space into the batch or the channels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph_flex.data_types import DataType
from delegraph_flex.numpy_executor.registry import NUMBERS
from flex_cases import Case, one
from flex_cases.shapes import sample

_F32, _I32, _I64 = DataType.FLOAT32, DataType.INT32, DataType.INT64


def cases() -> Iterator[Case]:
    for type in sorted(NUMBERS | {DataType.BOOL}):
        x = sample(type, (1, 2, 4, 2))
        yield one("SpaceToDepth", x, T=type, block_size=2)
        yield one("DepthToSpace", x.reshape(1, 2, 1, 8), T=type, block_size=2)
    for size in (2, 3):
        x = sample(_F32, (2, size, 2 * size, 3))
        yield one("SpaceToDepth", x, T=_F32, block_size=size, data_format=b"NHWC")
        deep = sample(_F32, (2, 1, 2, size * size * 2))
        yield one("DepthToSpace", deep, T=_F32, block_size=size, data_format=b"NHWC")
    yield one("SpaceToDepth", np.zeros((0, 2, 2, 1), np.float32), T=_F32, block_size=2)
    yield from _batches()


def _batches() -> Iterator[Case]:
    for type in (_F32, DataType.FLOAT64, DataType.FLOAT16, DataType.INT32, _I64):
        x = sample(type, (1, 2, 4, 2))
        types = {"T": type, "Tblock_shape": _I32}
        none, block = np.zeros((2, 2), np.int32), np.int32([2, 2])
        yield one("SpaceToBatchND", x, block, none, Tpaddings=_I32, **types)
        yield one("BatchToSpaceND", x.reshape(4, 1, 2, 2), block, none, Tcrops=_I32, **types)
    shapes = [
        ((2, 4, 3), [2], [[1, 1]]),
        ((1, 3, 5, 2), [2, 3], [[0, 1], [1, 0]]),
        ((2, 4), [4], [[0, 0]]),
        ((1, 2, 3, 2, 1), [2, 1, 2], [[0, 0], [2, 1], [1, 1]]),
        ((1, 2, 2, 1, 2), [1, 2, 1], [[0, 0], [0, 0], [0, 0]]),
    ]
    types = {"T": _F32, "Tblock_shape": _I64}
    for shape, block, borders in shapes:
        x, blocks, pads = sample(_F32, shape), np.array(block), np.array(borders)
        yield one("SpaceToBatchND", x, blocks, pads, Tpaddings=_I64, **types)
        batches = sample(_F32, (int(np.prod(block)) * 2, *shape[1:]))
        space = [dim * size for dim, size in zip(shape[1:], block, strict=False)]
        crops = np.array([[0, min(2, dim - 1)] for dim in space])
        for crop in (crops, crops[:, ::-1].copy(), np.zeros_like(crops)):
            yield one("BatchToSpaceND", batches, blocks, crop, Tcrops=_I64, **types)
    x = sample(_F32, (1, 3, 4, 2))
    pads = np.int32([[1, 0], [1, 1]])
    yield one("SpaceToBatch", x, pads, T=_F32, Tpaddings=_I32, block_size=2)
    deep = sample(_F32, (8, 2, 1, 2))
    yield one("BatchToSpace", deep, pads, T=_F32, Tidx=_I32, block_size=2)
