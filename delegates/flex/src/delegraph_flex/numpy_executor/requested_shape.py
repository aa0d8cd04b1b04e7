"""Shapes that a tensor of the model asks for."""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import NDArray

_MOST_ELEMENTS = 1 << 31
"""A few bytes in a model must not claim all memory."""


def requested_shape(dims: NDArray[Any]) -> tuple[int, ...]:
    """Return the shape that a vector of integers asks for.

    Raises:
        ValueError: no vector, a negative dimension, or more elements than fit in memory.
    """
    if dims.ndim != 1:
        raise ValueError(f"a shape has shape {list(dims.shape)}, expected a vector")
    shape = tuple(dims.tolist())
    require_reasonable(shape)
    return shape


def require_reasonable(shape: tuple[int, ...]) -> None:
    """Check that an array of *shape* may be made.

    Raises:
        ValueError: a negative dimension, or more elements than fit in memory.
    """
    if shape and min(shape) < 0:
        raise ValueError(f"shape is {list(shape)}, expected no negative dimension")
    if math.prod(shape) > _MOST_ELEMENTS:
        raise ValueError(f"shape is {list(shape)}, expected at most {_MOST_ELEMENTS} elements")
