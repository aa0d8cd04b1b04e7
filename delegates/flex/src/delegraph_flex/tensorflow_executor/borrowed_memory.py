"""Tracks memory of the interpreter that TensorFlow reads without copying."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray


class BorrowedMemory:
    """Set of memory ranges that belong to the interpreter, which overwrites them later.

    A value in such memory must be copied before it is stored in a variable or a list, or returned
    as a result. The set has whole buffers, so that parts of values are found, too.
    """

    def __init__(self) -> None:
        self._ranges: dict[int, tuple[int, int, Any]] = {}

    def add(self, array: NDArray[Any]) -> None:
        """Add the memory of *array* to the set; it is removed when the memory is freed."""
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        key = id(root)
        if key not in self._ranges:
            start = address(root)
            ranges = self._ranges
            reference = weakref.ref(root, lambda _: ranges.pop(key, None) and None)
            ranges[key] = (start, start + root.nbytes, reference)

    def holds(self, array: NDArray[Any]) -> bool:
        """Whether the first byte of *array* is in memory of the set."""
        start = address(array)
        return any(low <= start < high for low, high, _ in tuple(self._ranges.values()))


def address(array: NDArray[Any]) -> int:
    """Return the address of the first byte of an array."""
    start: int = array.__array_interface__["data"][0]
    return start
