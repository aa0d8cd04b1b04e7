"""Values that only change their place."""

from __future__ import annotations

from delegraph_numba_cpu.blocks import moves as blocks
from delegraph_numba_cpu.kernels.machine import copy_bytes, word
from delegraph_numba_cpu.kernels.registry import kernel

SOURCE, TARGET, BYTES, TILES = blocks.COPY.slots("source", "target", "bytes", "tiles")


@kernel(blocks.COPY)
def copy(block, tile, worker):
    """Copy the tile's share of the bytes."""
    size, tiles = word(block, BYTES), word(block, TILES)
    first, last = size * tile // tiles, size * (tile + 1) // tiles
    copy_bytes(word(block, TARGET) + first, word(block, SOURCE) + first, last - first)
