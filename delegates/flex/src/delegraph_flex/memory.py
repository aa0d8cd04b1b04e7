"""Checks the memory that operators need against the interpreter's limit, before allocation.

Operators call these checks for arrays that are much larger than their inputs: results whose size
depends on values, attributes or broadcasting, and intermediate results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from delegraph.operators import MemoryLimit
from delegraph_flex.executor import Step

LIMIT: ContextVar[MemoryLimit] = ContextVar("LIMIT")
"""Memory limit of the operators that this thread is running; the kernel sets it."""

_OTHERWISE = MemoryLimit.of_machine()

SMALL = 1 << 16
"""Number of elements below which the limit is not checked."""


def require(shape: Sequence[int], dtype: DTypeLike) -> None:
    """Check that an array of this shape and dtype is within the memory limit.

    Raises:
        ValueError: a dimension is negative.
        OperatorError: the array needs more bytes than the limit.
    """
    if shape and min(shape) < 0:
        raise ValueError(f"shape is {list(shape)}, expected no negative dimension")
    wanted = math.prod(shape) * np.dtype(dtype).itemsize
    limit = LIMIT.get(_OTHERWISE)
    if wanted > limit.bytes:
        limit.require(wanted, f"an array of shape {list(shape)}")


def requested_shape(dims: NDArray[Any], dtype: DTypeLike) -> tuple[int, ...]:
    """Return the shape in the integer vector *dims*, after a check against the memory limit.

    *dtype* is that of the array to be allocated.

    Raises:
        ValueError: *dims* is no vector, or a dimension is negative.
        OperatorError: the array needs more bytes than the limit.
    """
    if dims.ndim != 1:
        raise ValueError(f"a shape has shape {list(dims.shape)}, expected a vector")
    shape = tuple(dims.tolist())
    require(shape, dtype)
    return shape


def require_bytes(wanted: int, what: str) -> None:
    """Check that *wanted* bytes for *what* are within the memory limit.

    Raises:
        OperatorError: *wanted* exceeds the limit.
    """
    LIMIT.get(_OTHERWISE).require(wanted, what)


class Taken:
    """Sum of bytes that an operator allocates step by step, checked against the memory limit.

    Args:
        what: name of the user of the memory, for the error.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._total = 0
        self._limit = LIMIT.get(_OTHERWISE)

    def add(self, count: int) -> None:
        """Add *count* bytes to the total, and check the total against the limit.

        Raises:
            OperatorError: the total exceeds the limit.
        """
        self._total += count
        if self._total > self._limit.bytes:
            self._limit.require(self._total, self._what)


def require_broadcast(*arrays: NDArray[Any], dtype: DTypeLike | None = None) -> None:
    """Check that the result of broadcasting *arrays* is within the memory limit.

    Shapes that do not broadcast are ignored; the broadcasting operator reports them.

    Args:
        arrays: arrays that will be broadcast.
        dtype: dtype of the result; None means the type of the array with the widest elements.

    Raises:
        OperatorError: the array needs more bytes than the limit.
    """
    try:
        shape = np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        return
    widest = max((array.dtype for array in arrays), key=lambda found: found.itemsize)
    require(shape, widest if dtype is None else dtype)


def broadcasting(step: Step) -> Step:
    """Return *step* with a check before each call that the broadcast result fits in memory."""

    def run(*arrays: NDArray[Any]) -> Any:
        if math.prod([array.size for array in arrays]) > SMALL:
            require_broadcast(*arrays)
        return step(*arrays)

    return run


def broadcasting_two(step: Step, dtype: DTypeLike | None = None) -> Step:
    """Return *step*, a function of two arrays, with the memory check of :func:`broadcasting`.

    Args:
        step: the function.
        dtype: dtype of the result; None means the type of the array with the widest elements.
    """

    def run(x: NDArray[Any], y: NDArray[Any]) -> Any:
        if x.size * y.size > SMALL:
            require_broadcast(x, y, dtype=dtype)
        return step(x, y)

    return run
