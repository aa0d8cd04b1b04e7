"""Cases of operators on sparse tensors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from flex_cases import Case, one, strings, type_of

FLOAT, LONG = DataType.FLOAT32, DataType.INT64
I64 = TensorType.INT64
INDICES = np.array([[0, 1, 2], [0, 2, 0], [1, 0, 3], [3, 2, 1]])
SHAPE = np.array([4, 3, 5])


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(14)
    values = rng.normal(0, 9, 4).astype(np.float32)
    words = strings([b"a", b"b", b"cd", b""])
    for x, default in ((values, np.float32(-1)), (words, strings(b"?")), (values > 0, True)):
        type, kind = DataType.of(type_of(x)), type_of(x)
        default, scalar = np.asarray(default), x[1:2].reshape(())
        for index in (LONG, DataType.INT32):
            where, shape = INDICES.astype(index.dtype), SHAPE.astype(index.dtype)
            attrs = {"T": type, "Tindices": index, "validate_indices": True, "out": kind}
            yield one("SparseToDense", where, shape, x, default, **attrs)
            yield one("SparseToDense", where, shape, scalar, default, **attrs)
            line, one_long = where[[0, 2, 3], 0], shape[:1]
            yield one("SparseToDense", line, one_long, x[:3], default, **attrs)
            yield one("SparseToDense", line[0], one_long, scalar, default, **attrs)
            yield one("SparseToDense", where[:0], shape, x[:0], default, **attrs)
        free = {"T": type, "Tindices": LONG, "validate_indices": False, "out": kind}
        yield one("SparseToDense", INDICES[[2, 1, 2]], SHAPE, x[:3], default, **free)
        out = (I64, kind, TensorType.BOOL, I64)
        for order in ([0, 1, 2, 3], [3, 0, 2, 1], [1, 0]):
            some, few = INDICES[order], x[order]
            yield one("SparseFillEmptyRows", some, few, SHAPE, default, T=type, out=out)
            yield one("SparseReorder", some, few, SHAPE, T=type, out=(I64, kind))
        yield one("SparseFillEmptyRows", INDICES[:0], x[:0], SHAPE, default, T=type, out=out)
        full, all_rows = np.array([[0, 1], [1, 0]]), np.array([2, 2])
        yield one("SparseFillEmptyRows", full, x[:2], all_rows, default, T=type, out=out)
        for start, size in (([0, 0, 0], [2, 3, 5]), ([1, 0, 1], [9, 2, 3]), ([3, 2, 0], [1, 1, 1])):
            yield one(
                "SparseSlice", INDICES, x, SHAPE, np.array(start), np.array(size), T=type,
                out=(I64, kind, I64),
            )  # fmt: skip
    for shape in ([60], [5, 12], [2, -1, 3], [4, 3, 5], [-1]):
        yield one("SparseReshape", INDICES, SHAPE, np.array(shape), out=(I64, I64))
    yield one("SparseReshape", INDICES[:0], SHAPE, np.array([20, 3]), out=(I64, I64))
    yield one(
        "SparseFillEmptyRowsGrad", np.array([1, 0, 3]), rng.normal(0, 1, 5), T=DataType.FLOAT64,
        out=(TensorType.FLOAT64,) * 2, tolerance=1e-15,
    )  # fmt: skip
    yield from _arithmetic(rng)
    yield from _sums()
    yield from _joined()
    yield from _shares(rng)


def _sums() -> Iterator[Case]:
    """Yield sums of tensors that are out of order, repeat indices, or reach outside."""
    a, b = INDICES[[2, 0, 0, 3]], INDICES[[0, 2, 2, 1]]
    outside = np.array([[9, 9, 9], [-1, 0, 0], [-1, 0, 0], [3, 2, 1]])
    x, y = np.arange(1, 5, dtype=np.int32), np.arange(10, 50, 10, dtype=np.int32)
    out = (I64, TensorType.INT32, I64)
    kinds = {"T": DataType.INT32, "Treal": DataType.INT32, "out": out}
    zero = np.int32(0)
    for left in (a, INDICES, outside, INDICES[[0, 0, 1, 1]]):
        for right in (b, INDICES, outside, INDICES[[0, 1, 1, 1]]):
            yield one("SparseAdd", left, x, SHAPE, right, y, SHAPE, zero, **kinds)
    yield one("SparseAdd", INDICES, x, SHAPE, INDICES[:0], y[:0], SHAPE, zero, **kinds)
    yield one("SparseAdd", INDICES[:0], x[:0], SHAPE, INDICES, y, SHAPE, zero, **kinds)
    yield one("SparseAdd", INDICES[:0], x[:0], SHAPE, INDICES[:0], y[:0], SHAPE, zero, **kinds)
    for type in (DataType.INT8, DataType.INT16, DataType.INT32):
        kind, low = TensorType[type.name], np.iinfo(type.dtype).min
        lowest = np.array([low, low, low + 1, 3], type.dtype)
        less = np.array([0, -1, 0, -6], type.dtype)
        yield one(
            "SparseAdd", INDICES, lowest, SHAPE, INDICES, less, SHAPE, np.array(4, type.dtype),
            T=type, Treal=type, out=(I64, kind, I64),
        )  # fmt: skip
    x = np.array([np.nan, 1, -1, np.inf], np.float32)
    for threshold in (0, np.nan):
        yield one(
            "SparseAdd", INDICES, x, SHAPE, INDICES, x[[3, 2, 1, 3]], SHAPE,
            np.float32(threshold), T=FLOAT, Treal=FLOAT, out=(I64, TensorType.FLOAT32, I64),
        )  # fmt: skip


def _joined() -> Iterator[Case]:
    words = strings([b"a", b"b", b"cd", b""])
    for x in (np.arange(4, dtype=np.float32), np.arange(4, dtype=np.uint8), words):
        type, kind = DataType.of(type_of(x)), type_of(x)
        for axis in (0, 1, -1, -3):
            for order in ([0, 1, 2, 3], [3, 0, 2, 0]):
                indices, values = INDICES[order], x[order]
                yield one(
                    "SparseConcat", INDICES, indices, x, values, SHAPE, SHAPE, T=type, N=2,
                    concat_dim=axis, out=(I64, kind, I64),
                )  # fmt: skip
        wide, empty = np.array([4, 1 << 40, 5]), INDICES[:0]
        yield one(
            "SparseConcat", INDICES, empty, INDICES + 9, x, x[:0], x, SHAPE, wide, SHAPE, T=type,
            N=3, concat_dim=1, out=(I64, kind, I64),
        )  # fmt: skip


def _shares(rng: np.random.Generator) -> Iterator[Case]:
    indices = np.array([[1, 4], [0, 3], [0, 0], [1, 1], [0, 1], [3, 2], [1, 4]])
    for type, tolerance in ((FLOAT, 3e-7), (DataType.FLOAT64, 1e-15), (DataType.FLOAT16, 1e-3)):
        x = rng.normal(0, 3, 7).astype(type.dtype)
        attrs = {"T": type, "out": TensorType[type.name], "tolerance": tolerance}
        yield one("SparseSoftmax", indices, x, np.array([4, 5]), **attrs)
        yield one("SparseSoftmax", INDICES + 7, x[:4], SHAPE, **attrs)
        yield one("SparseSoftmax", INDICES[:0], x[:0], SHAPE, **attrs)
        for special in (np.nan, np.inf, -np.inf):
            x[[1, 3, 6]] = special
            yield one("SparseSoftmax", indices, x, np.array([4, 5]), **attrs)


def _arithmetic(rng: np.random.Generator) -> Iterator[Case]:
    for type in (FLOAT, DataType.FLOAT64, DataType.INT32, DataType.COMPLEX64):
        kind = TensorType[type.name]
        a, b = (rng.integers(-9, 9, 4).astype(type.dtype) for _ in range(2))
        other = np.array([[0, 0, 0], [0, 2, 0], [1, 0, 3], [3, 2, 4]])
        real = FLOAT if type is DataType.COMPLEX64 else type
        for threshold in (0, 4):
            yield one(
                "SparseAdd", INDICES, a, SHAPE, other, b, SHAPE,
                np.array(threshold, real.dtype), T=type, Treal=real, out=(I64, kind, I64),
            )  # fmt: skip
        for axes in ([0], [1, -1], [], [0, 1, 2]):
            for keeps in (False, True):
                yield one(
                    "SparseReduceSum", INDICES, a, SHAPE, np.array(axes, np.int32), T=type,
                    keep_dims=keeps, out=kind,
                )  # fmt: skip
        matrix = INDICES[:, [0, 2]]
        for flip in (False, True):
            for flip_b in (False, True):
                shape = (2, 4) if flip else (2, 5)
                dense = rng.integers(-9, 9, shape if flip_b else shape[::-1]).astype(type.dtype)
                if type is DataType.COMPLEX64:
                    dense += np.complex64(2j)
                yield one(
                    "SparseTensorDenseMatMul", matrix, a, np.array([4, 5]), dense, T=type,
                    Tindices=LONG, adjoint_a=flip, adjoint_b=flip_b, out=kind,
                )  # fmt: skip
