"""Memory between guard bytes, and between pages without access rights."""

from __future__ import annotations

import ctypes
import mmap
import os

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import OperatorError

MARK = 0xA5
"""Value of each guard byte."""

LINE = 64

NOTHING, READING = 0, 1
"""Access rights of pages: PROT_NONE and PROT_READ."""


class GuardedMemory:
    """A block of memory that ends at the end of a page, with guard bytes around it.

    Where the system supports it, the pages before and after have no access rights: the system ends
    the process at an access. Elsewhere these pages hold guard bytes, too.

    Attributes:
        array: the block, uint8.
        address: address of the first byte.
    """

    def __init__(self, size: int, room: int = 0) -> None:
        """Allocate a block of *size* bytes, with *room* readable bytes after it.

        Raises:
            OperatorError: there is not enough memory.
        """
        page = mmap.PAGESIZE
        inner = -(-(LINE + size + room) // page) * page
        try:
            self._map = mmap.mmap(-1, inner + 2 * page)
        except (OSError, OverflowError) as error:
            raise OperatorError(f"{size} guarded bytes cannot be had: {error}") from error
        whole = np.frombuffer(self._map, np.uint8)
        begin: int = whole.__array_interface__["data"][0]
        start = page + inner - room - size
        if room:
            start -= start % LINE
        self._pages = begin + page, inner
        self._before, self._after = whole[page:start], whole[start + size : page + inner]
        self.array: NDArray[np.uint8] = whole[start : start + size]
        self.address = begin + start
        whole[:] = MARK
        _protect(begin, page, NOTHING)
        _protect(begin + page + inner, page, NOTHING)

    def freeze(self) -> None:
        """Make the block read-only."""
        _protect(*self._pages, READING)

    def overrun(self) -> str:
        """Return the side of changed guard bytes, ``before`` or ``after``; "" if none changed."""
        if (self._before != MARK).any():
            return "before"
        return "after" if (self._after != MARK).any() else ""

    def mend(self) -> None:
        """Restore the guard bytes around the block after a change was found."""
        self._before[:] = MARK
        self._after[:] = MARK


def _protect(address: int, size: int, use: int) -> None:
    """Set the access rights of memory pages; do nothing on systems without ``mprotect``.

    Args:
        address: address of the first page.
        size: number of bytes of the pages.
        use: allowed uses, as ``mprotect`` numbers them; 0 for no access.
    """
    mprotect = None if os.name == "nt" else getattr(ctypes.CDLL(None), "mprotect", None)
    if mprotect is not None:
        mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), use)
