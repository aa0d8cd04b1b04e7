"""Cases of the operators that fetch elements or slices by index."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from flex_cases import Case, one, strings

FLOAT, INT, LONG = DataType.FLOAT32, DataType.INT32, DataType.INT64


def _gather(params: NDArray[Any], indices: Any, axis: int, type: DataType, **attrs: int) -> Case:
    index_type = attrs.pop("index", INT)
    index = np.asarray(indices, index_type.dtype)
    attrs.setdefault("batch_dims", 0)
    return one(
        "GatherV2", params, index, np.int64(axis),
        Tparams=type, Tindices=index_type, Taxis=LONG, **attrs,
    )  # fmt: skip


def cases() -> Iterator[Case]:
    yield from _coordinates()
    rng = np.random.default_rng(2)
    x = rng.normal(0, 9, (3, 4, 5)).astype(np.float32)
    for index in (INT, LONG):
        indices = np.array([[2, 0], [1, 1]], index.dtype)
        yield one("Gather", x, indices, Tparams=FLOAT, Tindices=index, validate_indices=True)
        for axis in (0, 1, -1):
            yield _gather(x, indices, axis, FLOAT, index=index)
    for type in (DataType.BOOL, DataType.INT8, DataType.COMPLEX64, DataType.BFLOAT16):
        yield _gather(x.astype(type.dtype), [[3], [0]], -2, type)
    words = strings([[b"a", b"bc"], [b"", b"\xff"]])
    yield _gather(words, [1, 0, 1], 1, DataType.STRING)
    yield _gather(x, 1, 1, FLOAT)
    yield _gather(x, np.zeros((0, 2)), 1, FLOAT)
    yield _gather(x[:, :0], np.zeros((2, 0)), 1, FLOAT)
    for shape, axis, batch in (
        ((3, 2), 1, 1), ((3,), 2, 1), ((3, 4), 2, 2), ((3, 4, 2), 2, -1), ((3, 4), 2, -1),
        ((3, 0), 1, 1),
    ):  # fmt: skip
        yield _gather(x, rng.integers(0, 4, shape), axis, FLOAT, batch_dims=batch)
    yield from _gather_nd(x, words)


def _gather_nd(x: NDArray[Any], words: NDArray[Any]) -> Iterator[Case]:
    indices = np.array([[[2, 3, 4], [0, 0, 0]], [[1, 2, 3], [0, 1, 4]]])
    for type in (INT, LONG, DataType.INT16):
        for depth in range(4):
            some = np.ascontiguousarray(indices[..., :depth]).astype(type.dtype)
            yield one("GatherNd", x, some, Tparams=FLOAT, Tindices=type)
    yield one("GatherNd", x, indices[0, 0], Tparams=FLOAT, Tindices=LONG)
    yield one("GatherNd", x, np.zeros((0, 2), int), Tparams=FLOAT, Tindices=LONG)
    yield one("GatherNd", words, np.array([[1, 1], [0, 0]]), Tparams=DataType.STRING, Tindices=LONG)
    bad = np.array([[1, 2], [0, -1], [5, 1], [2, 3]])
    yield one("GatherNd", x, bad, Tparams=FLOAT, Tindices=LONG, bad_indices_policy=b"IGNORE")
    for policy in (b"DEFAULT", b"ERROR"):
        yield one("GatherNd", x, bad[:1], Tparams=FLOAT, Tindices=LONG, bad_indices_policy=policy)


def _coordinates() -> Iterator[Case]:
    for type in (INT, LONG):
        dims = np.array([2, 3, 4], type.dtype)
        for indices in ([23, 0, 7], [5], 11, [-1, -7, -30]):
            yield one("UnravelIndex", np.array(indices, type.dtype), dims, Tidx=type)
        yield one("UnravelIndex", np.array([3, 1], type.dtype), dims[2:], Tidx=type)
