"""Cases of the operators that write, add or compare at indices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph_flex.data_types import DataType
from flex_cases import Case, one, strings, type_of

FLOAT, INT, LONG = DataType.FLOAT32, DataType.INT32, DataType.INT64
TENSOR_OPS = ("TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub")


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(3)
    shape = (4, 3, 2)
    repeated = np.array([[[3, 0, 1], [1, 2, 0]], [[3, 0, 1], [0, 1, 1]]])  # one index twice
    for depth in (1, 2, 3):
        where = np.ascontiguousarray(repeated[..., :depth])
        for type in (FLOAT, DataType.FLOAT64, DataType.INT8, DataType.INT64, DataType.COMPLEX64):
            x, updates = (
                rng.integers(-60, 60, dims).astype(type.dtype)
                for dims in (shape, (2, 2, *shape[depth:]))
            )
            yield one(
                "ScatterNd", where, updates, np.array(shape), T=type, Tindices=LONG,
                out=type_of(updates),
            )  # fmt: skip
            yield one(
                "ScatterNdNonAliasingAdd", x, where.astype(np.int32), updates, T=type, Tindices=INT
            )
            for op in TENSOR_OPS:
                yield one(op, x, where, updates, T=type, Tindices=LONG)
            if type is not DataType.COMPLEX64:
                yield one("TensorScatterMax", x, where, updates, T=type, Tindices=LONG)
                yield one("TensorScatterMin", x, where, updates, T=type, Tindices=LONG)
    yield from _special(rng)


def _special(rng: np.random.Generator) -> Iterator[Case]:
    x = np.array([1, np.nan, 3, 4], np.float32)
    where, updates = np.array([[0], [1], [2]]), np.array([5, 6, np.nan], np.float32)
    for op in ("TensorScatterMax", "TensorScatterMin", *TENSOR_OPS):
        yield one(op, x, where, updates, T=FLOAT, Tindices=LONG)
        bad = np.array([[7], [-1], [2]])
        yield one(op, x, bad, updates, T=FLOAT, Tindices=LONG, bad_indices_policy=b"IGNORE")
        yield one(op, x, where[:0], updates[:0], T=FLOAT, Tindices=LONG)
    words, more = strings([b"a", b"b"]), strings([b"c", b"d"])
    again = np.array([[1], [1]])
    yield one(
        "ScatterNd", again, more, np.array([3]), T=DataType.STRING, Tindices=LONG,
        out=type_of(words),
    )  # fmt: skip
    yield one("TensorScatterUpdate", words, again, more, T=DataType.STRING, Tindices=LONG)
    truth = np.array([True, False])
    yield one(
        "ScatterNd", again, truth, np.array([3]), T=DataType.BOOL, Tindices=LONG, out=type_of(truth)
    )
    for type in (DataType.FLOAT16, DataType.BFLOAT16):
        values = rng.normal(0, 3, 4).astype(type.dtype)
        for op in ("TensorScatterAdd", "TensorScatterMax", "TensorScatterUpdate"):
            yield one(op, values, where, values[:3], T=type, Tindices=LONG)
    rows = rng.normal(0, 9, (3, 2)).astype(np.float32)
    for op in ("InplaceAdd", "InplaceSub", "InplaceUpdate"):
        yield one(op, rows, np.array([2, 0], np.int32), rows[:2], T=FLOAT)
    for type in (INT, LONG):
        order = rng.permutation(6).astype(type.dtype)
        yield one("InvertPermutation", order, T=type)
        yield one("InvertPermutation", order[:0], T=type)
