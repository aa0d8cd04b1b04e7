"""All pairs of 8-bit integers, and random operands of any type, for tests of two operands."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LIMITS = {"UINT8": (0, 255), "INT8": (-128, 127), "INT16": (-32768, 32767)}


def every_pair(type: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return two ``[256, 256]`` arrays that together hold every pair of an 8-bit type."""
    low, high = LIMITS[type]
    values = np.arange(low, high + 1).astype(type.lower())
    rows, columns = np.meshgrid(values, values, indexing="ij")
    return rows.copy(), columns.copy()


def every_value(type: str) -> NDArray[Any]:
    """Return all values of an 8- or 16-bit type, ascending."""
    low, high = LIMITS[type]
    return np.arange(low, high + 1).astype(type.lower())


def random_integers(seed: int, type: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return integers from the whole range of a type."""
    info = np.iinfo(type.lower())
    generator = np.random.default_rng(seed)
    return generator.integers(info.min, info.max, shape, type.lower(), endpoint=True)


def random_floats(seed: int, shape: tuple[int, ...], spread: float = 5.0) -> NDArray[Any]:
    """Return normally distributed float32."""
    values = np.random.default_rng(seed).standard_normal(shape) * spread
    return values.astype(np.float32)
