"""Memory of the interpreter that TensorFlow reads in place."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray


class BorrowedMemory:
    """Knows which memory belongs to the interpreter, which will write to it again.

    A value that lies there, or a part of one, must be copied before it is kept: in a variable, in a
    list, or as a result. Whole buffers are remembered, so that parts and neighbours are found.
    """

    def __init__(self) -> None:
        self._ranges: dict[int, tuple[int, int, Any]] = {}

    def add(self, array: NDArray[Any]) -> None:
        """Remember the memory behind *array* for as long as it exists."""
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
        """Return whether *array* begins in memory that was added."""
        start = address(array)
        return any(low <= start < high for low, high, _ in tuple(self._ranges.values()))


def address(array: NDArray[Any]) -> int:
    """Return where an array begins."""
    start: int = array.__array_interface__["data"][0]
    return start
