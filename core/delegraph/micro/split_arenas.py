"""Two arenas: one for persistent memory, one for buffers and temporary memory.

Source:
    PersistentArenaBufferAllocator and NonPersistentArenaBufferAllocator,
    tflite-micro/micro/arena_allocator/.
"""

from __future__ import annotations

from delegraph.errors import StateError
from delegraph.micro.single_arena import HeadMemory, align_down, too_small


class PersistentArenaBufferAllocator:
    """Allocates persistent memory from the end of its own arena.

    Args:
        size: size of the arena in bytes.
        start: address of the arena.
    """

    def __init__(self, size: int, start: int = 0) -> None:
        self._start = start
        self._end = self._tail = start + size

    @property
    def persistent_used_bytes(self) -> int:
        """Number of allocated bytes, including alignment."""
        return self._end - self._tail

    def allocate_persistent_buffer(self, size: int, alignment: int) -> int:
        """Return the address of *size* aligned bytes that are never freed.

        Raises:
            ArenaTooSmallError: the arena has fewer free bytes.
        """
        address = align_down(self._tail - size, alignment)
        if address < self._start:
            raise too_small("persistent memory", size, size - (self._start - address))
        self._tail = address
        return address


class NonPersistentArenaBufferAllocator(HeadMemory):
    """Allocates one resizable buffer and temporary memory in their own arena.

    Unlike in the single arena, a second resizable buffer is an error.

    Args:
        size: size of the arena in bytes.
        start: address of the arena.
    """

    def __init__(self, size: int, start: int = 0) -> None:
        super().__init__(size, start)
        self._has_resizable_buffer = False

    def allocate_resizable_buffer(self, size: int, alignment: int) -> int:
        """Allocate the only resizable buffer, of *size* bytes; return its address.

        Raises:
            ArenaTooSmallError: the arena has fewer bytes.
            StateError: there is a buffer already, or there is temporary memory.
        """
        if self._has_resizable_buffer:
            raise StateError("there is a resizable buffer; deallocate_resizable_buffer() first")
        address = super().allocate_resizable_buffer(size, alignment)
        self._has_resizable_buffer = True
        return address

    def deallocate_resizable_buffer(self, address: int) -> None:
        """Set the size of the buffer at *address* to 0; another buffer may then be allocated."""
        super().deallocate_resizable_buffer(address)
        self._has_resizable_buffer = False
