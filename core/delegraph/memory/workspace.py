"""Working memory (scratch) that the nodes of a subgraph use one after the other.

A node's working memory is used only while the node runs, so all nodes share one buffer. The buffer
is as large as the largest need of a node. An asynchronous node has separate memory.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.memory.buffers import BUFFER_ALIGNMENT, aligned_buffer

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray


class Block:
    """Part of a workspace, reserved by one node.

    Attributes:
        data: the array, of the requested shape and dtype. Each :meth:`Workspace.commit` sets
            another array. Before the first call, the array is separate memory, for nodes that run
            while they are prepared.
    """

    __slots__ = ("__weakref__", "_data", "dtype", "offset", "shape")

    def __init__(self, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.offset = offset
        self.shape = shape
        self.dtype = dtype
        self._data: NDArray[Any] | None = None

    @property
    def data(self) -> NDArray[Any]:
        """Array of the block's shape and dtype; its content is not initialised."""
        if self._data is None:
            self._data = np.empty(self.shape, self.dtype)
        return self._data

    def bind(self, buffer: NDArray[np.uint8]) -> None:
        """Make ``data`` a part of *buffer*."""
        raw = buffer[self.offset : self.end]
        self._data = raw.view(self.dtype).reshape(self.shape)

    @property
    def end(self) -> int:
        """Offset of the first byte after the block."""
        return self.offset + math.prod(self.shape) * self.dtype.itemsize


class Workspace:
    """One growing buffer with the blocks of all nodes; a block is valid while its node runs.

    >>> workspace = Workspace()
    >>> workspace.begin_node()
    >>> first = workspace.reserve((100,), np.float32)
    >>> workspace.begin_node()
    >>> second = workspace.reserve((10,), np.float32)
    >>> workspace.commit()
    >>> workspace.size, np.shares_memory(first.data, second.data)
    (400, True)
    """

    def __init__(self) -> None:
        self._cursor = 0
        self._needed = 0
        self._needed_before = 0  # bytes for nodes before the current one
        self._own: weakref.WeakSet[Block] = weakref.WeakSet()  # blocks with separate memory
        self._buffer: NDArray[np.uint8] = aligned_buffer(0)
        self._bound: weakref.WeakSet[Block] = weakref.WeakSet()
        self._new: list[Block] = []
        self._first_new = 0  # first of the current node's blocks in _new

    @property
    def size(self) -> int:
        """Number of bytes of the buffer."""
        return len(self._buffer)

    @property
    def needed(self) -> int:
        """Number of bytes that all blocks will take after the next :meth:`commit`."""
        return max(self._needed, self.size) + sum(block.end for block in self._own)

    def begin_node(self) -> None:
        """Begin the reservations of the next node, which may reuse the memory of earlier nodes."""
        self._cursor = 0
        self._needed_before = self._needed
        self._first_new = len(self._new)

    def keep_apart(self) -> None:
        """Give the current node's blocks separate memory, since other nodes may run meanwhile."""
        self._needed = self._needed_before
        for block in self._new[self._first_new :]:
            block.offset = 0  # offset in a separate buffer
            self._own.add(block)

    def reserve(self, shape: Sequence[int], dtype: DTypeLike) -> Block:
        """Return a new block of *shape* and *dtype* for the current node, 64-byte aligned."""
        block = Block(self._cursor, tuple(shape), np.dtype(dtype))
        self._cursor = -(-block.end // BUFFER_ALIGNMENT) * BUFFER_ALIGNMENT
        self._needed = max(self._needed, block.end)
        self._new.append(block)
        return block

    def commit(self) -> None:
        """Give memory to the blocks reserved since the last commit.

        Blocks of different nodes share the buffer; blocks kept apart get a buffer each. If the
        buffer is too small, a larger buffer replaces it, also for earlier blocks.

        Raises:
            MemoryError: there is not enough memory.
        """
        if self._needed > len(self._buffer):
            self._buffer = aligned_buffer(self._needed)
            for block in self._bound:
                block.bind(self._buffer)
        for block in self._new:
            if block in self._own:
                block.bind(aligned_buffer(block.end))
            else:
                block.bind(self._buffer)
                self._bound.add(block)
        self._new.clear()

    def release(self) -> None:
        """Free the buffer, and remove all blocks."""
        self._needed = 0
        self._buffer = np.empty(0, np.uint8)
        self._bound.clear()
        self._own.clear()
        self._new.clear()
