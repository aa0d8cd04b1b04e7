"""Huge pages for the memory of another runtime, so that its first use takes less time."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray

_GAP = 1 << 12
"""Largest number of bytes, such as padding, between two arrays of one block."""


def advise_huge_pages(arrays: Iterable[NDArray[Any]]) -> None:
    """Ask the system to use huge pages for the blocks of memory in which *arrays* lie.

    Linux prepares memory page by page when it is first written. For pages of 4 kB, this takes
    longer than simple operators take to compute their contents. Other systems are not asked.
    """
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    if advice is None:
        return
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    for start, end in blocks_of(arrays):
        first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        if end > first:
            madvise(first, end - first, advice)  # an error changes nothing


def blocks_of(arrays: Iterable[NDArray[Any]]) -> list[tuple[int, int]]:
    """Return the first and end address of each block of memory that adjacent *arrays* fill."""
    blocks: list[tuple[int, int]] = []
    for start, size in sorted((array.ctypes.data, array.nbytes) for array in arrays):
        if blocks and start <= blocks[-1][1] + _GAP:
            first, end = blocks.pop()
            blocks.append((first, max(end, start + size)))
        else:
            blocks.append((start, start + size))
    return blocks
