"""Huge pages for the memory of another runtime."""

from __future__ import annotations

import numpy as np

from delegraph.tools.differing import huge_pages
from delegraph.tools.differing.huge_pages import advise_huge_pages


def test_arrays_side_by_side_are_one_block() -> None:
    memory = np.zeros(1 << 16, np.uint8)
    start = memory.ctypes.data
    parts = [memory[40:100], memory[:40], memory[160:200], memory[1 << 14 :]]
    blocks = [(first - start, end - start) for first, end in huge_pages.blocks_of(parts)]
    assert blocks == [(0, 200), (1 << 14, 1 << 16)]


def test_advice_keeps_values() -> None:
    memory = np.arange(1 << 20)
    advise_huge_pages([memory, memory[:0]])
    assert (memory == np.arange(1 << 20)).all()
