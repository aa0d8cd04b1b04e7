"""Memory of an arena: the bytes at the addresses that allocators return."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.memory.best_fit import align
from delegraph.micro.targets import ARENA_ALIGNMENT

ArenaBuffer: TypeAlias = bytearray | memoryview | NDArray[np.uint8]
"""Memory of the caller in which the arena is placed."""


class ArenaMemory:
    """A caller's buffer, used from its first 16-byte aligned byte.

    If a number of bytes is given instead of a buffer, the arena has addresses but no memory, which
    suffices for planning.

    Attributes:
        start: address of the first aligned byte.
        size: number of bytes from *start* to the end.
    """

    def __init__(self, buffer: ArenaBuffer | int) -> None:
        if isinstance(buffer, int):
            self.start, self.size, self._memory = 0, buffer, np.empty(0, np.uint8)
            return
        memory = np.frombuffer(buffer, np.uint8)
        if not memory.flags.writeable:
            raise ArgumentError("the arena is read-only, needs to be writable: a bytearray, say")
        address = memory.ctypes.data
        self.start = align(address, ARENA_ALIGNMENT)
        self.size = max(len(memory) - (self.start - address), 0)
        self._memory = memory[self.start - address :]

    def __contains__(self, address: int) -> bool:
        return self.start <= address < self.start + self.size

    def view(self, address: int, size: int) -> NDArray[np.uint8]:
        """Return the *size* bytes at *address*, as a view; empty if the arena has no memory."""
        first = address - self.start
        return self._memory[first : first + size]
