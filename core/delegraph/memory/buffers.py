"""Buffers of memory at addresses that suit vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

BUFFER_ALIGNMENT = 64
"""Alignment of a buffer's address in bytes."""


def aligned_buffer(size: int, alignment: int = BUFFER_ALIGNMENT) -> NDArray[np.uint8]:
    """Return ``[size], uint8``, uninitialised, at an address that is a multiple of *alignment*.

    Raises:
        MemoryError: there is not enough memory.
    """
    try:
        memory = np.empty(size + alignment - 1, np.uint8)
    except ValueError as error:  # beyond the address space
        raise MemoryError(f"a buffer of {size} bytes has no address") from error
    start = -memory.ctypes.data % alignment
    return memory[start : start + size]
