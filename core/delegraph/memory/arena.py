"""One buffer in which blocks that are live at different times share memory.

Source:
    SimpleMemoryArena and ResizableAlignedBuffer, tflite/simple_memory_arena.cc.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from delegraph.errors import ArgumentError, StateError
from delegraph.lazy_dataclass import NamedTuple
from delegraph.memory.best_fit import BestFit, align
from delegraph.memory.buffers import BUFFER_ALIGNMENT, aligned_buffer

if TYPE_CHECKING:
    from numpy.typing import NDArray


MOST_TIGHTENED = 1000
"""Largest number of blocks of a plan that hill climbing improves."""

TOLERATED = 1.01
"""Largest size of a good plan, as a multiple of the bytes that every plan needs."""

_MOST_BYTES = 2**62  # larger sizes have no address, and would overflow int64 offsets


class Allocation(NamedTuple):
    """A block of an arena: its tensor, and the nodes during which the block is live.

    Attributes:
        tensor: tensor index.
        first_node: first plan position at which the block is in use.
        last_node: last plan position at which the block is in use.
        offset: byte offset in the arena.
        size: number of bytes.
    """

    tensor: int
    first_node: int
    last_node: int
    offset: int
    size: int


class SimpleMemoryArena:
    """Plans blocks by offset; :meth:`commit` then allocates a buffer for all blocks.

    The buffer never shrinks, and keeps its content when it grows. Memory is not used before a
    tensor is written, so a large plan only takes address space.

    Args:
        alignment: number of bytes, 1 to 64, of which every offset is a multiple.

    Attributes:
        high_water_mark: number of bytes that the plan needs.

    >>> arena = SimpleMemoryArena()
    >>> a = arena.allocate(100, tensor=0, first_node=0, last_node=1)
    >>> b = arena.allocate(100, tensor=1, first_node=1, last_node=2)
    >>> c = arena.allocate(100, tensor=2, first_node=2, last_node=3)
    >>> (a.offset, b.offset, c.offset), arena.high_water_mark
    ((0, 128, 0), 228)
    """

    def __init__(self, alignment: int = BUFFER_ALIGNMENT) -> None:
        if not 1 <= alignment <= BUFFER_ALIGNMENT:
            raise ArgumentError(f"alignment is {alignment}, needs 1 to {BUFFER_ALIGNMENT}")
        self._alignment = alignment
        self._buffer = np.empty(0, np.uint8)
        self._committed = False
        self.high_water_mark = 0
        self._activate([])

    @property
    def buffer_size(self) -> int:
        """Number of bytes of the buffer; 0 before the first :meth:`commit`."""
        return len(self._buffer)

    def allocate(self, size: int, tensor: int, first_node: int, last_node: int) -> Allocation:
        """Return a block of *size* bytes for *tensor*, live from *first_node* to *last_node*.

        The block does not overlap any active block that is live at one of these nodes.

        Raises:
            MemoryError: the block cannot have an address.
        """
        if size == 0:  # it needs no space and does not conflict with other tensors
            return Allocation(tensor, first_node, last_node, 0, 0)
        if self.high_water_mark + size > _MOST_BYTES:
            raise MemoryError(f"tensor {tensor} of {size} bytes does not fit in any memory")
        offset = self._best_fit.best_offset(size, first_node, last_node)
        self.high_water_mark = max(self.high_water_mark, offset + size)
        allocation = Allocation(tensor, first_node, last_node, offset, size)
        self._active.append(allocation)
        self._best_fit.add(first_node, last_node, offset, size)
        return allocation

    def commit(self) -> bool:
        """Make the buffer large enough for the plan; return whether the buffer moved.

        Raises:
            MemoryError: there is not enough memory; the old buffer remains.
        """
        self._committed = False
        moved = self.high_water_mark > self.buffer_size
        if moved:
            buffer = aligned_buffer(self.high_water_mark)
            buffer[: self.buffer_size] = self._buffer
            self._buffer = buffer
        self._committed = True
        return moved

    def resolve(self, allocation: Allocation) -> tuple[NDArray[np.uint8], int, int]:
        """Return the buffer, ``[bytes], uint8``, and *allocation*'s offset and size in it.

        Raises:
            StateError: the plan has no buffer (yet).
        """
        if not self._committed or allocation.offset + allocation.size > self.buffer_size:
            raise StateError(f"memory of tensor {allocation.tensor} is planned but not committed")
        return self._buffer, allocation.offset, allocation.size

    @property
    def committed(self) -> bool:
        """Whether the buffer is large enough for the plan."""
        return self._committed

    def clear_plan(self) -> None:
        """Remove all blocks and the high water mark; the next plan uses the same buffer."""
        self._committed = False
        self.high_water_mark = 0
        self._activate([])

    def release_buffer(self) -> None:
        """Free the buffer and keep the plan; :meth:`commit` allocates the buffer again."""
        self._committed = False
        self._buffer = np.empty(0, np.uint8)

    def reset_allocations(self) -> None:
        """Make all blocks inactive, but keep the high water mark."""
        self._activate([])

    def purge_before(self, node: int) -> None:
        """Make the blocks inactive that no node from *node* on uses."""
        self._keep(lambda allocation: allocation.last_node >= node)

    def purge_after(self, node: int) -> None:
        """Remove the blocks whose lifetime begins after *node*."""
        self._keep(lambda allocation: allocation.first_node <= node)

    def activate_at(self, allocations: Iterable[Allocation], node: int) -> None:
        """Make the blocks among *allocations* that are live during *node* the active blocks."""
        self._activate([a for a in allocations if a.first_node <= node <= a.last_node])

    def replan(self, allocations: Sequence[Allocation]) -> None:
        """Replace the whole plan by *allocations*; the buffer does not change."""
        self._committed = False
        self.high_water_mark = max((block.offset + block.size for block in allocations), default=0)
        self._activate(list(allocations))

    def _keep(self, wanted: Callable[[Allocation], bool]) -> None:
        kept = [allocation for allocation in self._active if wanted(allocation)]
        if len(kept) < len(self._active):
            self._activate(kept)

    def _activate(self, allocations: list[Allocation]) -> None:
        self._active = allocations
        self._best_fit = BestFit(self._alignment)
        for block in allocations:
            self._best_fit.add(block.first_node, block.last_node, block.offset, block.size)


def is_tight(blocks: Sequence[Allocation], alignment: int) -> bool:
    """Whether a plan needs at most one percent more bytes than the blocks of its busiest node.

    This is a quick check: a plan may be tight although the result is False, if
    ``bounds.lower_bound`` finds that every plan needs more bytes.

    >>> is_tight([Allocation(0, 0, 1, 0, 64), Allocation(1, 1, 2, 64, 8)], alignment=64)
    True
    >>> is_tight([Allocation(0, 0, 1, 0, 64), Allocation(1, 2, 3, 64, 64)], alignment=64)
    False

    Args:
        blocks: all blocks of the plan.
        alignment: number of bytes of which every offset is a multiple.
    """
    total = max((block.offset + block.size for block in blocks), default=0)
    padded = _busiest(blocks, alignment) - alignment + 1  # the last block needs no padding
    return total <= TOLERATED * max(_busiest(blocks, 1), padded)


def _busiest(blocks: Sequence[Allocation], alignment: int) -> int:
    """Number of bytes of the blocks that are live at the busiest node.

    Sizes of blocks are padded to multiples of *alignment*.
    """
    changes: dict[int, int] = {}
    for block in blocks:
        size = align(block.size, alignment)
        changes[block.first_node] = changes.get(block.first_node, 0) + size
        changes[block.last_node + 1] = changes.get(block.last_node + 1, 0) - size
    return max(accumulate(changes[node] for node in sorted(changes)), default=0)
