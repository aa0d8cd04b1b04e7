"""Cases of the operators of two numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph_flex.data_types import DataType
from delegraph_flex.numpy_executor.registry import COMPLEX, FLOATS, INTEGERS, SIGNED
from flex_cases import Case, one, strings

TOLERANCE = {
    DataType.FLOAT16: 2e-3,
    DataType.BFLOAT16: 1e-2,
    DataType.FLOAT32: 1e-6,
    DataType.FLOAT64: 1e-12,
    DataType.COMPLEX64: 2e-6,
    DataType.COMPLEX128: 1e-12,
}
"""What a few roundings may do."""

SPECIAL = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan]


def cases() -> Iterator[Case]:
    yield from _floats()
    yield from _specials()
    yield from _complex()
    yield from _integers()
    yield from _bits()
    yield from _sums()


def _floats() -> Iterator[Case]:
    """Every operator on every type of floats, broadcast."""
    exact = ("Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "Maximum", "Minimum", "DivNoNan")
    near = ("SquaredDifference", "Atan2", "Xlogy", "Xlog1py", "Xdivy", "MulNoNan")
    whole = ("FloorDiv", "FloorMod", "TruncateDiv")
    rng = np.random.default_rng(1)
    for type in sorted(FLOATS):
        x, y = (rng.uniform(0.5, 4, shape).astype(type.dtype) for shape in ((2, 1, 3), (4, 1)))
        for op in exact:
            yield one(op, x, -y, T=type)
        for op in near:
            yield one(op, x, y, T=type, tolerance=TOLERANCE[type])
        a, b = (np.round(z).astype(type.dtype) for z in (x * 64, y * 3 + 1))
        for op in whole:
            yield one(op, -a, b, T=type)
            yield one(op, a, -b, T=type, name=f"{op}-of-negative")
        yield one("Pow", x, y, T=type, tolerance=TOLERANCE[type])
    for type in (DataType.FLOAT32, DataType.FLOAT64):
        x = rng.normal(0, 9, (3, 1)).astype(type.dtype)
        y = rng.normal(0, 2, (1, 4)).astype(type.dtype)
        for op in ("Mod", "TruncateMod"):
            yield one(op, x, y, T=type, tolerance=TOLERANCE[type])
        yield one("NextAfter", x, y, T=type)
        yield one("Sub", x[:0], y, T=type, name="Sub-empty")
        yield one("Sub", x[0, 0], y[0, 0], T=type, name="Sub-scalars")


def _specials() -> Iterator[Case]:
    """Zeros, infinities and NaN."""
    ops = (
        *("AddV2", "Sub", "Mul", "Div", "Maximum", "Minimum", "FloorDiv", "FloorMod", "Pow"),
        *("SquaredDifference", "Atan2", "Xlogy", "Xlog1py", "Xdivy", "DivNoNan", "MulNoNan"),
    )
    for type in (DataType.FLOAT32, DataType.FLOAT64):
        x = np.array(SPECIAL, type.dtype)
        for op in ops:
            yield one(op, x[:, None], x, T=type, tolerance=1e-6, name=f"{op}-special")


def _complex() -> Iterator[Case]:
    ops = (
        *("AddV2", "Sub", "Mul", "Div", "RealDiv", "Pow", "SquaredDifference"),
        *("Xlogy", "Xlog1py", "Xdivy", "DivNoNan", "MulNoNan"),
    )
    rng = np.random.default_rng(2)
    for type in sorted(COMPLEX):
        x, y = (
            (rng.normal(0, 2, shape) + 1j * rng.normal(0, 2, shape)).astype(type.dtype)
            for shape in ((3, 1), (2, 1, 4))
        )
        for op in ops:
            yield one(op, x, y, T=type, tolerance=TOLERANCE[type])
        x, y = x.copy(), y.copy()
        x[0] = y[0, 0, 1] = 0
        for op in ops[-5:]:
            if op == "Xdivy":  # what 1 / 0 is among complex numbers, depends on the compiler
                continue
            yield one(op, x, y, T=type, tolerance=TOLERANCE[type], name=f"{op}-of-zero")


def _integers() -> Iterator[Case]:
    """Overflow, signs, and the lowest number."""
    dividing = ("Div", "FloorDiv", "FloorMod", "TruncateDiv")
    for type in sorted(INTEGERS):
        low, high = np.iinfo(type.dtype).min, np.iinfo(type.dtype).max
        values = [low, low + 1, high, 100, 7, 3, 2, 1, *([-1, -2, -7] if low else [0])]
        x = np.array(values, type.dtype)[:, None]
        y = np.array([value for value in values if value], type.dtype)
        for op in ("AddV2", "Sub", "Mul", "Maximum", "Minimum"):
            yield one(op, x, y, T=type)
        for op in dividing:
            yield one(op, x, y, T=type)
            yield one(op, x[:0], 0 * y, T=type, name=f"{op}-of-nothing")
    for type in (DataType.INT32, DataType.INT64):
        x = np.array([7, -7, 5, -5, np.iinfo(type.dtype).min], type.dtype)[:, None]
        y = np.array([2, -2, 3, -1], type.dtype)
        for op in ("Mod", "TruncateMod", "SquaredDifference"):
            yield one(op, x, y, T=type)
    for type in sorted(SIGNED):
        x, y = np.array([[-3], [2], [5], [0]], type.dtype), np.array([0, 1, 2, 5], type.dtype)
        yield one("Pow", x, y, T=type)


def _bits() -> Iterator[Case]:
    for type in sorted(INTEGERS):
        low, high = np.iinfo(type.dtype).min, np.iinfo(type.dtype).max
        x = np.array([low, high, 5, high // 3], type.dtype)[:, None]
        y = np.array([0, 1, 3, 100, *([-1] if low else [])], type.dtype)
        for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift"):
            yield one(op, x, y, T=type)


def _sums() -> Iterator[Case]:
    rng = np.random.default_rng(3)
    x, y = strings([[b"a"], [b""]]), strings([b"b", b"\xff\x00"])
    yield one("Add", x, y, T=DataType.STRING)
    yield one("Add", strings(b"a"), strings(b"b"), T=DataType.STRING, name="Add-scalars")
    for type in (DataType.FLOAT16, DataType.FLOAT32, DataType.INT8, DataType.COMPLEX64):
        values = [rng.normal(0, 50, (2, 3)).astype(type.dtype) for _ in range(11)]
        tolerance = TOLERANCE.get(type, 0)
        yield one("AddN", *values, N=11, T=type, tolerance=tolerance)
        yield one("AddN", values[0], N=1, T=type)
