"""Operators of two numbers: sums, products, quotients, remainders, powers, bits.

Integers wrap around, as in TensorFlow; division of integers by zero is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.memory import require_bytes
from delegraph_flex.numpy_executor.registry import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    NUMBERS,
    REAL,
    functions,
    operator,
)

Array = NDArray[Any]


@operator("Add", types=NUMBERS | {DataType.STRING}, broadcasts=True)
def add(node: FlexNode) -> Step:
    """Return a function that computes x + y, broadcast; strings are concatenated."""
    if node.type("T") is not DataType.STRING:
        return np.add
    return _joined


def _joined(x: Array, y: Array) -> Array:
    """Return x and y concatenated as strings, broadcast, after a check of the memory."""
    x, y = np.asarray(x, object), np.asarray(y, object)
    total = int(np.sum(np.add(_lengths(x), _lengths(y))))
    require_bytes(total, "joined text")
    return np.asarray(np.add(x, y), object)


def _lengths(x: Array) -> NDArray[np.int64]:
    lengths = np.fromiter(map(len, x.reshape(-1)), np.int64, x.size)
    return lengths.reshape(x.shape)


@operator("AddN", types=NUMBERS)
def add_all(node: FlexNode) -> Step:
    """Return a function that computes the sum of arrays of one shape, from left to right."""

    def run(*values: Array) -> Array:
        shapes = {value.shape for value in values}
        if len(shapes) > 1:
            raise ValueError(f"inputs have shapes {sorted(shapes)}, expected equal ones")
        return reduce(np.add, values)

    return run


@operator("Div", "TruncateDiv", types=NUMBERS, broadcasts=True)
def divide(node: FlexNode) -> Step:
    """Return a function that computes x / y, broadcast; truncated for integers and TruncateDiv."""
    if node.type("T") in INTEGERS:
        return _checked(_truncating_quotient)
    if node.op == "Div" or node.type("T") in COMPLEX:
        return np.divide
    return lambda x, y: np.trunc(np.divide(x, y))


@operator("FloorDiv", types=REAL, broadcasts=True)
def divide_and_floor(node: FlexNode) -> Step:
    """Return a function that computes the largest whole number not above x / y, broadcast."""
    if node.type("T") in INTEGERS:
        return _checked(np.floor_divide)
    return lambda x, y: np.floor(np.divide(x, y))


@operator("FloorMod", types=REAL, broadcasts=True)
def floor_remainder(node: FlexNode) -> Step:
    """Return a function that computes ``x - floor(x / y) * y``, broadcast, with the sign of y."""
    return _checked(np.remainder) if node.type("T") in INTEGERS else np.remainder


@operator("Mod", "TruncateMod", types=REAL, broadcasts=True)
def truncating_remainder(node: FlexNode) -> Step:
    """Return a function that computes ``x - trunc(x / y) * y``, broadcast, with the sign of x."""
    return _checked(np.fmod) if node.type("T") in INTEGERS else np.fmod


@operator("SquaredDifference", types=NUMBERS, broadcasts=True)
def squared_difference(node: FlexNode) -> Step:
    """Return a function that computes |x - y| squared, broadcast, also for complex numbers."""
    if node.type("T") in COMPLEX:

        def run(x: Array, y: Array) -> Array:
            difference = np.subtract(x, y)
            return difference * np.conj(difference)

        return run
    return lambda x, y: np.square(np.subtract(x, y))


@operator("LeftShift", types=INTEGERS, broadcasts=True)
def left_shift(node: FlexNode) -> Step:
    """Return a function that computes x << y, broadcast; y is clamped to valid bit numbers."""
    return _shift(np.left_shift, node)


@operator("RightShift", types=INTEGERS, broadcasts=True)
def right_shift(node: FlexNode) -> Step:
    """Return a function that computes x >> y with the sign kept, broadcast.

    The shift y is clamped to valid bit numbers, as in LeftShift.
    """
    return _shift(np.right_shift, node)


def _zero_where_x_is_zero(compute: Callable[[Array, Array], Array]) -> Step:
    def run(x: Array, y: Array) -> Array:
        result = compute(x, y)
        return np.where(x == 0, result.dtype.type(0), result)

    return run


def _zero_where_y_is_zero(compute: Callable[[Array, Array], Array]) -> Step:
    def run(x: Array, y: Array) -> Array:
        result = compute(x, y)
        return np.where(y == 0, result.dtype.type(0), result)

    return run


functions(
    {"AddV2": np.add, "Sub": np.subtract, "Mul": np.multiply, "Pow": np.power},
    NUMBERS,
    broadcasts=True,
)
functions({"Maximum": np.maximum, "Minimum": np.minimum}, REAL, broadcasts=True)
functions(
    {
        "RealDiv": np.divide,
        "Xlogy": _zero_where_x_is_zero(lambda x, y: x * np.log(y)),
        "Xlog1py": _zero_where_x_is_zero(lambda x, y: x * np.log1p(y)),
        "Xdivy": _zero_where_x_is_zero(np.divide),
        "DivNoNan": _zero_where_y_is_zero(np.divide),
        "MulNoNan": _zero_where_y_is_zero(np.multiply),
    },
    FLOATS | COMPLEX,
    broadcasts=True,
)
functions({"Atan2": np.arctan2, "NextAfter": np.nextafter}, FLOATS, broadcasts=True)
functions(
    {"BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor},
    INTEGERS,
    broadcasts=True,
)


def _checked(divide: Callable[[Array, Array], Array]) -> Step:
    """Return a function that divides integers by *divide*, with an error for a divisor of 0."""

    def run(x: Array, y: Array) -> Array:
        if x.size and not y.all():
            raise ValueError("integer division by zero")
        return divide(x, y)

    return run


def _truncating_quotient(x: Array, y: Array) -> Array:
    return np.floor_divide(np.subtract(x, np.fmod(x, y)), y)


def _shift(shift: Callable[[Array, Array], Array], node: FlexNode) -> Step:
    dtype = node.type("T").dtype
    low, high = dtype.type(0), dtype.type(8 * dtype.itemsize - 1)
    return lambda x, y: shift(x, np.minimum(np.maximum(y, low), high))
