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
    step_of,
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


@step_of("AddN", types=NUMBERS)
def add_all(*values: Array) -> Array:
    """Return the sum of arrays of one shape, from left to right."""
    shapes = {value.shape for value in values}
    if len(shapes) > 1:
        raise ValueError(f"inputs have shapes {sorted(shapes)}, expected equal ones")
    return reduce(np.add, values)


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


@operator("FloorMod", "Mod", "TruncateMod", types=REAL, broadcasts=True)
def remainder(node: FlexNode) -> Step:
    """Return a function that computes the remainder of x / y, broadcast.

    The remainder of FloorMod has the sign of y, that of other operators the sign of x.
    """
    compute = np.remainder if node.op == "FloorMod" else np.fmod
    return _checked(compute) if node.type("T") in INTEGERS else compute


@operator("SquaredDifference", types=NUMBERS, broadcasts=True)
def squared_difference(node: FlexNode) -> Step:
    """Return a function that computes |x - y| squared, broadcast, also for complex numbers."""
    if node.type("T") in COMPLEX:

        def run(x: Array, y: Array) -> Array:
            difference = np.subtract(x, y)
            return difference * np.conj(difference)

        return run
    return lambda x, y: np.square(np.subtract(x, y))


@operator("LeftShift", "RightShift", types=INTEGERS, broadcasts=True)
def shift(node: FlexNode) -> Step:
    """Return a function that computes x << y, or x >> y with the sign kept, broadcast.

    The shift y is clamped to valid bit numbers.
    """
    dtype, move = node.type("T").dtype, np.left_shift if node.op == "LeftShift" else np.right_shift
    low, high = dtype.type(0), dtype.type(8 * dtype.itemsize - 1)
    return lambda x, y: move(x, np.minimum(np.maximum(y, low), high))


def _zero_where_zero(which: int, compute: Callable[[Array, Array], Array]) -> Step:
    """Return *compute*, but with the result 0 where the argument with index *which* is 0."""

    def run(*values: Array) -> Array:
        result = compute(*values)
        return np.where(values[which] == 0, result.dtype.type(0), result)

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
        "Xlogy": _zero_where_zero(0, lambda x, y: x * np.log(y)),
        "Xlog1py": _zero_where_zero(0, lambda x, y: x * np.log1p(y)),
        "Xdivy": _zero_where_zero(0, np.divide),
        "DivNoNan": _zero_where_zero(1, np.divide),
        "MulNoNan": _zero_where_zero(1, np.multiply),
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
