"""Cases of reducing axes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from delegraph_flex.numpy_executor.registry import COMPLEX, FLOATS, INTEGERS, REAL
from flex_cases import Case, one
from flex_cases.arithmetic import SPECIAL, TOLERANCE

_SUMS = ("Sum", "Prod", "Mean", "EuclideanNorm")
_I32, _I64 = DataType.INT32, DataType.INT64


def cases() -> Iterator[Case]:
    yield from _axes()
    yield from _floats()
    yield from _integers()
    yield from _truth()
    yield from _positions()
    yield from _losses()


def _axes() -> Iterator[Case]:
    """Yield cases with every way to give the axes."""
    x = np.random.default_rng(1).normal(0, 3, (2, 3, 2)).astype(np.float32)
    for op in (*_SUMS, "Max", "Min"):
        for axes in ([], [1], [-1], [0, 2], [2, 0], [-3, 1, 2]):
            for keep in (False, True):
                index = np.array(axes, np.int32 if keep else np.int64)
                type = _I32 if keep else _I64
                yield one(
                    op, x, index, keep_dims=keep, T=DataType.FLOAT32, Tidx=type, tolerance=1e-6
                )
        for empty in (x[:0], x[:, :0]):
            axis = np.array([0], np.int32)
            yield one(op, empty, axis, T=DataType.FLOAT32, Tidx=_I32, name=f"{op}-empty")
        scalar = np.array(3, np.float32)
        for array, axis in ((x, np.int32(1)), (scalar, np.zeros(0, np.int32))):
            yield one(op, array, axis, T=DataType.FLOAT32, Tidx=_I32, tolerance=1e-6)


def _floats() -> Iterator[Case]:
    rng = np.random.default_rng(2)
    axis = np.array([1], np.int32)
    for type in sorted(FLOATS | COMPLEX):
        x = rng.uniform(0.5, 2, (2, 30)).astype(type.dtype)
        if type in COMPLEX:
            x += (1j * rng.normal(0, 1, x.shape)).astype(type.dtype)
        for op in (*_SUMS, *(["Max", "Min"] if type in FLOATS else [])):
            part = x[:, :4] if op == "Prod" else x
            exact = op in ("Max", "Min")
            tolerance = 0 if exact else TOLERANCE[type]
            yield one(op, part, axis, T=type, Tidx=_I32, tolerance=tolerance)
    for type in sorted(FLOATS):
        rows = np.array([[1, np.nan, 2], [np.inf, 1, -np.inf], [-0.0, 0, 0]], type.dtype)
        for op in ("Sum", "Mean", "Max", "Min"):
            yield one(op, rows, axis, T=type, Tidx=_I32, name=f"{op}-special")


def _integers() -> Iterator[Case]:
    rng = np.random.default_rng(3)
    for type in sorted(INTEGERS):
        info = np.iinfo(type.dtype)
        x = rng.integers(info.min, info.max, (3, 7), type.dtype, endpoint=True)
        x[0] = [info.min, info.max, 1, 2, 3, info.max, info.max]
        axis = np.array([1], np.int32)
        for op in ("Sum", "Prod", "Max", "Min", "Mean"):
            yield one(op, x, axis, T=type, Tidx=_I32)
            yield one(op, x[:, :0], axis, T=type, Tidx=_I32, name=f"{op}-empty")
        small = np.array([[3, 4, 0], [1, 1, 1], [5, 7, 2]], type.dtype)
        yield one("EuclideanNorm", small, axis, T=type, Tidx=_I32)
        if type.name[0] != "U":
            yield one("Mean", -small, axis, T=type, Tidx=_I32, name="Mean-negative")


def _truth() -> Iterator[Case]:
    x = np.array([[True, False, True], [True, True, True], [False, False, False]])
    for op in ("All", "Any"):
        for axes in ([0], [1], [0, 1], [-1], []):
            for keep in (False, True):
                yield one(op, x, np.array(axes, np.int32), keep_dims=keep, Tidx=_I32)
        yield one(op, x[:, :0], np.array([1], np.int64), Tidx=_I64, name=f"{op}-empty")


def _positions() -> Iterator[Case]:
    rng = np.random.default_rng(4)
    for type in sorted(REAL | {DataType.BOOL}):
        x = rng.integers(0, 5, (3, 4, 2)).astype(type.dtype)
        for op in ("ArgMax", "ArgMin"):
            for axis, out in ((0, _I32), (-2, _I64), (2, _I32)):
                yield one(
                    op, x, np.int32(axis), T=type, Tidx=_I32, output_type=out,
                    out=TensorType[out.name],
                )  # fmt: skip
    for out in (DataType.INT16, DataType.UINT16):
        yield one(
            "ArgMax", np.float32([1, 3, 2]), np.int64(0), T=DataType.FLOAT32, Tidx=_I64,
            output_type=out, out=TensorType[out.name],
        )  # fmt: skip
    rows = np.array(
        [[1, np.nan, 2], [np.nan, np.nan, 5], [-np.inf, np.nan, 1], [np.inf, 1, np.inf]], np.float32
    )
    for op in ("ArgMax", "ArgMin"):
        for array in (rows, np.float32([SPECIAL])):
            yield one(
                op, array, np.int32(1), T=DataType.FLOAT32, Tidx=_I32, output_type=_I64,
                out=TensorType.INT64, name=f"{op}-special",
            )  # fmt: skip


def _losses() -> Iterator[Case]:
    for type in sorted(FLOATS):
        x = np.random.default_rng(3).normal(0, 2, (3, 50)).astype(type.dtype)
        for part in (x, x[0, 0], x[:0]):
            yield one("L2Loss", part, T=type, tolerance=TOLERANCE[type])
    yield one("L2Loss", np.float32([np.inf, np.nan]), T=DataType.FLOAT32)
