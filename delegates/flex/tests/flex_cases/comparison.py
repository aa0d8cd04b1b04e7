"""Cases of comparing, combining truth values, and choosing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from delegraph_flex.numpy_executor.registry import ALL, COMPLEX, NUMBERS, REAL
from flex_cases import Case, one, strings
from flex_cases.arithmetic import SPECIAL

_BOOL = TensorType.BOOL


def cases() -> Iterator[Case]:
    yield from _comparisons()
    yield from _equalities()
    yield from _logic()
    yield from _choices()


def _values(type: DataType, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Return values with few different numbers, so that some are equal."""
    numbers = np.random.default_rng(seed).integers(0, 3, shape)
    if type is DataType.STRING:
        return strings([b"", b"a", b"b\xff"])[numbers]
    return (numbers * (1j if type in COMPLEX else 1)).astype(type.dtype)


def _comparisons() -> Iterator[Case]:
    for type in sorted(REAL):
        x, y = _values(type, (2, 3, 1), 1), _values(type, (4,), 2)
        for op in ("Less", "LessEqual", "Greater", "GreaterEqual"):
            yield one(op, x, y, T=type, out=_BOOL)
    x = np.array(SPECIAL, np.float32)
    for op in ("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"):
        yield one(op, x[:, None], x, T=DataType.FLOAT32, out=_BOOL, name=f"{op}-special")
    for type in (DataType.FLOAT32, DataType.FLOAT64):
        x = np.array([1, 1, 1, np.inf, np.nan, -3], type.dtype)
        y = np.array([1.25, 1.2, 1, np.inf, np.nan, -3.2], type.dtype)
        for tolerance in (1e-5, 0.25, 1.0):
            yield _approximate(x, y, type, tolerance)


def _approximate(x: np.ndarray, y: np.ndarray, type: DataType, tolerance: float) -> Case:
    """Return a case of ApproximateEqual with the attribute *tolerance*."""
    case = one("ApproximateEqual", x, y, T=type, out=_BOOL)
    case.calls[0].attrs["tolerance"] = tolerance
    return case


def _equalities() -> Iterator[Case]:
    for type in sorted(ALL):
        x, y = _values(type, (2, 3, 1), 1), _values(type, (4,), 2)
        for op in ("Equal", "NotEqual"):
            yield one(op, x, y, T=type, out=_BOOL)
            x0, y0 = x[0, 0], y[:1].reshape(())
            yield one(op, x0.reshape(()), y0, T=type, out=_BOOL, name=f"{op}-scalars")
            for other in (y, _values(type, (3, 2), 3)):
                yield one(op, x, other, T=type, incompatible_shape_error=False, out=_BOOL)
            yield one(op, x[:0], y, T=type, out=_BOOL, name=f"{op}-empty")


def _logic() -> Iterator[Case]:
    x, y = np.array([[True], [False]]), np.array([True, False, True])
    for op in ("LogicalAnd", "LogicalOr"):
        yield one(op, x, y)
        yield one(op, np.array(True), np.array(False), name=f"{op}-scalars")
    yield one("LogicalNot", x)
    yield one("LogicalNot", np.array(True))


def _choices() -> Iterator[Case]:
    condition = np.array([True, False])
    for type in sorted(ALL):
        out = TensorType[type.name]
        x, y = _values(type, (2, 3), 1), _values(type, (2, 3), 2)
        chosen = x == y
        yield one("Select", chosen, x, y, T=type, out=out)
        yield one("Select", condition, x, y, T=type, out=out, name="Select-rows")
        yield one("Select", np.array(False), x, y, T=type, out=out, name="Select-all")
        yield one("SelectV2", chosen, x, y, T=type, out=out)
        yield one("SelectV2", condition[:, None], x[0], y[:1], T=type, out=out)
        yield one("SelectV2", condition[:0, None], x[0], y[:1], T=type, out=out)
        x0, y0 = x[0, :1].reshape(()), y[0, :1].reshape(())
        yield one("SelectV2", condition[0], x0, y0, T=type, out=out, name="SelectV2-scalars")
    for type in sorted(NUMBERS - {DataType.FLOAT16} | {DataType.BOOL}):  # no kernel for FLOAT16
        x = _values(type, (2, 3, 2), 1)
        for part in (x, x[0], x[0, :, 0], x[:0], np.zeros_like(x)):
            yield one("Where", part, T=type, out=TensorType.INT64)
    yield one("Where", np.array(SPECIAL, np.float32), T=DataType.FLOAT32, out=TensorType.INT64)
