"""Best-fit placement: the smallest gap that is large enough, between blocks live at the same time.

TFLite scans all blocks for each new block. Here blocks are found by the nodes during which they
live, so planning a chain of n nodes takes O(n log n). If thousands of blocks are live at once,
NumPy scans them, and only if a gap can exist. The resulting offsets are TFLite's.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TypeAlias

import numpy as np

NEVER = 2**31 - 1
"""Last node of a block that is live to the end, for any number of nodes."""

_Block: TypeAlias = tuple[int, int, int, int]  # first, last, offset, end

FEW = 128  # number of blocks up to which plain Python is faster than NumPy
_LIKELY_CROWDED = 8  # calls after a crowded one for which a crowd is assumed


def align(offset: int, alignment: int) -> int:
    """Return the first multiple of *alignment* at or after *offset*."""
    return -(-offset // alignment) * alignment


class BestFit:
    """The blocks of an arena, with a search for the smallest gap that is large enough.

    A block is bytes ``[offset, offset + size)`` during nodes ``[first, last]``. Blocks
    that are live at the same node do not overlap, and all offsets are aligned.
    """

    def __init__(self, alignment: int) -> None:
        self._alignment = alignment
        # Ascending, by the bit length of last - first: the blocks of one list that are live during
        # a node begin close to it.
        self._by_span: dict[int, list[_Block]] = {}
        self._crowd: _Crowd | None = None
        self._crowded = 0  # number of calls for which a crowd is assumed

    def add(self, first: int, last: int, offset: int, size: int) -> None:
        """Add a block: bytes ``[offset, offset + size)`` during nodes ``[first, last]``."""
        block = (first, last, offset, offset + size)
        insort(self._by_span.setdefault((last - first).bit_length(), []), block)
        if self._crowd is not None:
            self._crowd.add(*block)

    def best_offset(self, size: int, first: int, last: int) -> int:
        """Return the offset for a block of *size* bytes, live during nodes *first* to *last*.

        The offset is the aligned start of a gap, or else the end of all blocks. Gaps are compared
        by size as in TFLite: the size of a new gap is without the padding at its start, the size of
        the best gap so far with the padding.

        Source:
            SimpleMemoryArena::Allocate, tflite/simple_memory_arena.cc.
        """
        if self._crowd is not None:
            offset = self._crowd.offset_if_solid(size, first, last)
            if offset is not None:
                return offset
            if self._crowded:
                self._crowded -= 1
                return self._crowd.best_offset(size, first, last)
        windows = self._windows(first, last)
        if sum(stop - start for _, start, stop in windows) > FEW:
            self._crowded = _LIKELY_CROWDED
            return self._gathered_crowd().best_offset(size, first, last)
        neighbours = [
            (offset, end)
            for blocks, start, stop in windows
            for _, block_last, offset, end in blocks[start:stop]
            if block_last >= first
        ]
        neighbours.sort()
        return self._scan(neighbours, size)

    def _windows(self, first: int, last: int) -> list[tuple[list[_Block], int, int]]:
        """Return parts of the sorted lists of blocks with all blocks live in *first*..*last*.

        Each list has the blocks whose lifetimes have about the same length.

        Returns:
            Tuples of a list, the start of the part, and its end.
        """
        windows = []
        for bits, blocks in self._by_span.items():
            start = bisect_left(blocks, (first - (1 << bits) + 1,))
            windows.append((blocks, start, bisect_left(blocks, (last + 1,), start)))
        return windows

    def _gathered_crowd(self) -> _Crowd:
        if self._crowd is None:
            self._crowd = _Crowd(self._alignment)
            for blocks in self._by_span.values():
                for block in blocks:
                    self._crowd.add(*block)
        return self._crowd

    def _scan(self, neighbours: list[tuple[int, int]], size: int) -> int:
        best = best_gap = None
        end = 0
        for offset, block_end in neighbours:
            start = align(end, self._alignment)
            if start + size <= offset and (best_gap is None or offset - start < best_gap):
                best, best_gap = start, offset - end
            end = max(end, block_end)
        return align(end, self._alignment) if best is None else best


class _Crowd:
    """Blocks of an arena in NumPy arrays, for graphs in which very many are in use at once.

    Attributes:
        _lives: first and last node of each block, by offset, ``[2, capacity], int32``.
        _places: offset, end and padded end of each block, ``[3, capacity], int64``.
        _used: bytes in use at each node, padding included, ``[nodes], int64``.
        _top: end of the highest block at each node, padding included, ``[nodes], int64``. The last
            entry of ``_used`` and ``_top`` stands for every later node.
    """

    def __init__(self, alignment: int) -> None:
        self._alignment = alignment
        self._lives = np.zeros((2, 256), np.int32)
        self._places = np.zeros((3, 256), np.int64)
        self._count = 0
        self._used = np.zeros(256, np.int64)
        self._top = np.zeros(256, np.int64)

    def add(self, first: int, last: int, offset: int, end: int) -> None:
        """Add a block of bytes ``[offset, end)`` during nodes ``[first, last]``."""
        count = self._count
        if count == self._places.shape[1]:
            self._lives = np.concatenate((self._lives, np.zeros_like(self._lives)), axis=1)
            self._places = np.concatenate((self._places, np.zeros_like(self._places)), axis=1)
        place = int(self._places[0, :count].searchsorted(offset, "right"))
        padded_end = align(end, self._alignment)
        for columns, values in (
            (self._lives, (first, min(last, NEVER))),
            (self._places, (offset, end, padded_end)),
        ):
            columns[:, place + 1 : count + 1] = columns[:, place:count]
            columns[:, place] = values
        self._count = count + 1
        nodes = self._nodes(first, last)
        self._used[nodes] += padded_end - offset
        np.maximum(self._top[nodes], padded_end, out=self._top[nodes])

    def offset_if_solid(self, size: int, first: int, last: int) -> int | None:
        """Return the end of the blocks if every gap is smaller than *size* bytes, else None.

        The bytes of a gap are free at every node of ``[first, last]``, so no gap is larger than the
        free space at the fullest of these nodes.
        """
        nodes = self._nodes(first, last)
        top = int(self._top[nodes].max())
        free = top - int(self._used[nodes].max())
        return top if free < size else None

    def best_offset(self, size: int, first: int, last: int) -> int:
        """Return the offset for a block of *size* bytes, live during nodes *first* to *last*.

        Several gaps may have the best size. Then the first gap whose start needs no padding is
        taken, or else the last gap. TFLite's comparison finds the same gap, since offsets are
        aligned.
        """
        firsts, lasts = self._lives[:, : self._count]
        offsets, ends, padded_ends = self._places
        live = ((lasts >= first) & (firsts <= last)).nonzero()[0]
        starts = np.zeros(len(live) + 1, np.int64)  # before each block, and after all
        np.maximum.accumulate(padded_ends.take(live), out=starts[1:])
        gaps = offsets.take(live) - starts[:-1]
        fitting = (gaps >= size).nonzero()[0]
        if not len(fitting):
            return int(starts[-1])
        gaps = gaps[fitting]
        equals = fitting[gaps == gaps.min()]
        if len(equals) > 1:
            unpadded = np.maximum.accumulate(np.append(0, ends[live]))[equals] == starts[equals]
            return int(starts[equals[unpadded.argmax() if unpadded.any() else -1]])
        return int(starts[equals[0]])

    def _nodes(self, first: int, last: int) -> slice:
        """Return the slice of the time axis for nodes *first* to *last*; it grows as needed."""
        latest = first if last >= NEVER else last
        missing = latest + 2 - len(self._used)
        if missing > 0:
            growth = max(missing, len(self._used))
            self._used = np.pad(self._used, (0, growth), mode="edge")
            self._top = np.pad(self._top, (0, growth), mode="edge")
        return slice(first, min(last + 1, len(self._used)))
