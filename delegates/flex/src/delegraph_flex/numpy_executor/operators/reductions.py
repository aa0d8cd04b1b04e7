"""Operators that reduce axes: sums, means, maxima, minima, and their positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import HALVES, DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode
from delegraph_flex.numpy_executor.registry import (
    COMPLEX,
    FLOATS,
    INTEGERS,
    NUMBERS,
    REAL,
    operator,
)

Array = NDArray[Any]
Axes = tuple[int, ...]
Reduce = Callable[[Array, Axes, bool], Any]


@operator("Sum", types=NUMBERS)
def total(node: FlexNode) -> Step:
    """Return a function for the sum over axes; integers wrap around, 16-bit floats use float32."""
    type = node.type("T")
    wide = type.wide
    add: Any = np.add.reduce
    result = type.dtype if type in HALVES else None
    return _reduction(lambda x, axes, keep: add(x, axes, wide, None, keep), node, result)


@operator("Prod", types=NUMBERS)
def product(node: FlexNode) -> Step:
    """Return a function for the product over axes; integers wrap around."""
    dtype = node.type("T").dtype
    multiply: Any = np.multiply.reduce
    return _reduction(lambda x, axes, keep: multiply(x, axes, dtype, None, keep), node)


@operator("Mean", types=NUMBERS)
def mean(node: FlexNode) -> Step:
    """Return a function that computes the mean over axes.

    Integers are summed with 64 bits, and the division truncates towards 0; 16-bit floats are summed
    as float32.
    """
    type = node.type("T")
    if type in INTEGERS:
        return _reduction(_integer_mean, node, type.dtype)
    wide = type.wide
    add: Any = np.add.reduce

    def run(x: Array, axes: Axes, keep: bool) -> Any:
        sums = add(x, axes, wide, None, keep)
        return sums / wide.type(_count(x, axes))

    return _reduction(run, node, type.dtype)


@operator("Max", "Min", types=REAL)
def extreme(node: FlexNode) -> Step:
    """Return a function for the maximum or minimum over axes.

    The result is NaN if there is a NaN. Without elements, the maximum is the lowest value, and the
    minimum the highest.
    """
    dtype = node.type("T").dtype
    if node.type("T") in FLOATS:
        lowest, highest = dtype.type(-np.inf), dtype.type(np.inf)
    else:
        lowest, highest = map(dtype.type, (np.iinfo(dtype).min, np.iinfo(dtype).max))
    ufunc, initial = (np.maximum, lowest) if node.op == "Max" else (np.minimum, highest)
    reduce: Any = ufunc.reduce
    return _reduction(lambda x, axes, keep: reduce(x, axes, None, None, keep, initial), node)


@operator("All", "Any")
def truth(node: FlexNode) -> Step:
    """Return a function that computes whether all values, or any, over axes are true."""
    reduce: Any = (np.logical_and if node.op == "All" else np.logical_or).reduce
    return _reduction(lambda x, axes, keep: reduce(x, axes, np.bool_, None, keep), node)


@operator("EuclideanNorm", types=NUMBERS)
def euclidean_norm(node: FlexNode) -> Step:
    """Return a function that computes the square root of the sum of squares over axes."""
    type = node.type("T")
    add: Any = np.add.reduce
    if type in COMPLEX:

        def run_complex(x: Array, axes: Axes, keep: bool) -> Any:
            return np.sqrt(add(np.square(x.real) + np.square(x.imag), axes, keepdims=keep))

        return _reduction(run_complex, node, type.dtype)
    wide = type.wide

    def run(x: Array, axes: Axes, keep: bool) -> Any:
        return np.sqrt(add(np.square(x, dtype=wide), axes, wide, None, keep))

    return _reduction(run, node, type.dtype)


@operator("L2Loss", types=FLOATS)
def half_the_squares(node: FlexNode) -> Step:
    """Return a function that computes half the sum of all squares; 16-bit floats use float32."""
    dtype, wide = node.type("T").dtype, node.type("T").wide

    def run(x: Array) -> Any:
        return (np.square(x, dtype=wide).sum(dtype=wide) / 2).astype(dtype)

    return run


@operator("ArgMax", "ArgMin", types=REAL | {DataType.BOOL})
def index_of_extreme(node: FlexNode) -> Step:
    """Function for the index of the first extreme value along an axis, which ignores NaN."""
    find: Callable[..., Any]
    find, in_place_of_nan = (np.argmax, -np.inf) if node.op == "ArgMax" else (np.argmin, np.inf)
    type, dtype = node.type("T"), node.type("output_type", DataType.INT64).dtype
    of_floats = type in FLOATS
    substitute: Any = type.dtype.type(in_place_of_nan) if of_floats else None

    def run(x: Array, axis: Array) -> Any:
        if of_floats:
            unordered = np.isnan(x)
            if unordered.any():
                x = np.where(unordered, substitute, x)
        return find(x, axis.item()).astype(dtype)

    return run


def _reduction(reduce: Reduce, node: FlexNode, dtype: np.dtype[Any] | None = None) -> Step:
    """Return a function of values and axes that calls *reduce*; it converts to *dtype* if given."""
    keep = node.bool("keep_dims", False)

    def run(x: Array, axes: Array) -> Any:
        return reduce(x, tuple(axes.ravel().tolist()), keep)

    def run_and_cast(x: Array, axes: Array) -> Any:
        return reduce(x, tuple(axes.ravel().tolist()), keep).astype(dtype)

    return run if dtype is None else run_and_cast


def _count(x: Array, axes: Axes) -> int:
    """Return the number of elements of *x* along *axes*, from which each result is computed."""
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    return count


def _integer_mean(x: Array, axes: Axes, keep: bool) -> Any:
    add: Any = np.add.reduce
    wide = np.dtype(np.uint64 if x.dtype.kind == "u" else np.int64)
    count = _count(x, axes)
    sums = add(x, axes, wide, None, keep)
    magnitudes = np.abs(sums).view(np.uint64) if wide.kind == "i" else sums
    quotients = (magnitudes // np.uint64(max(count, 1))).astype(wide)
    return np.where(sums < 0, -quotients, quotients) if wide.kind == "i" else quotients
