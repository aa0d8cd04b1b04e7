"""Memory that operators ask for before they take it, within the interpreter's limit.

Whatever is larger than what an operator was given, by more than a small factor, is asked for here:
results whose size values, attributes or broadcasting decide, and what lies between.
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
"""What holds for the operators that run now, in this thread; the kernel sets it."""

_OTHERWISE = MemoryLimit.of_machine()

SMALL = 1 << 16
"""Number of elements below which the limit is not checked."""


def require(shape: Sequence[int], dtype: DTypeLike) -> None:
    """Check that an array may be made.

    Raises:
        ValueError: a negative dimension.
        OperatorError: more bytes than the limit.
    """
    if shape and min(shape) < 0:
        raise ValueError(f"shape is {list(shape)}, expected no negative dimension")
    wanted = math.prod(shape) * np.dtype(dtype).itemsize
    limit = LIMIT.get(_OTHERWISE)
    if wanted > limit.bytes:
        limit.require(wanted, f"an array of shape {list(shape)}")


def requested_shape(dims: NDArray[Any], dtype: DTypeLike) -> tuple[int, ...]:
    """Return the shape that a vector of integers asks for, of an array that may be made.

    Raises:
        ValueError: no vector, or a negative dimension.
        OperatorError: more bytes than the limit.
    """
    if dims.ndim != 1:
        raise ValueError(f"a shape has shape {list(dims.shape)}, expected a vector")
    shape = tuple(dims.tolist())
    require(shape, dtype)
    return shape


def require_bytes(wanted: int, what: str) -> None:
    """Check that *wanted* bytes may be taken for *what*.

    Raises:
        OperatorError: they are more than the limit.
    """
    LIMIT.get(_OTHERWISE).require(wanted, what)


class Taken:
    """Bytes that are taken bit by bit, where only the way there shows how many.

    Args:
        what: takes them, for the error.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._total = 0
        self._limit = LIMIT.get(_OTHERWISE)

    def add(self, count: int) -> None:
        """Check that *count* bytes more may be taken.

        Raises:
            OperatorError: all together are more than the limit.
        """
        self._total += count
        if self._total > self._limit.bytes:
            self._limit.require(self._total, self._what)


def require_broadcast(*arrays: NDArray[Any], dtype: DTypeLike | None = None) -> None:
    """Check that an array may be made that has the shape which these broadcast to.

    Shapes that do not broadcast are left to who broadcasts.

    Args:
        arrays: what is broadcast.
        dtype: of the result; None for that of the widest array.

    Raises:
        OperatorError: more bytes than the limit.
    """
    try:
        shape = np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        return
    widest = max((array.dtype for array in arrays), key=lambda found: found.itemsize)
    require(shape, widest if dtype is None else dtype)


def broadcasting(step: Step) -> Step:
    """Return a function of arrays that broadcasts them, with a look at their shapes before."""

    def run(*arrays: NDArray[Any]) -> Any:
        if math.prod([array.size for array in arrays]) > SMALL:
            require_broadcast(*arrays)
        return step(*arrays)

    return run


def broadcasting_two(step: Step, dtype: DTypeLike | None = None) -> Step:
    """Return :func:`broadcasting` of two arrays, which most of these functions have.

    Args:
        step: the function.
        dtype: of its result; None for that of the widest array.
    """

    def run(x: NDArray[Any], y: NDArray[Any]) -> Any:
        if x.size * y.size > SMALL:
            require_broadcast(x, y, dtype=dtype)
        return step(x, y)

    return run
