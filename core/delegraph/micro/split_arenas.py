"""Two arenas, one for what is kept and one for what is passing.

Source:
    PersistentArenaBufferAllocator and NonPersistentArenaBufferAllocator,
    tflite-micro/micro/arena_allocator/.
"""

from __future__ import annotations

from delegraph.errors import StateError
from delegraph.memory.best_fit import align
from delegraph.micro.single_arena import Head, align_down, too_small


class PersistentArenaBufferAllocator:
    """Persistent memory alone, given from the end of its arena.

    Args:
        size: bytes of the arena.
        start: its address.
    """

    def __init__(self, size: int, start: int = 0) -> None:
        self._start = start
        self._end = self._tail = start + size

    @property
    def persistent_used_bytes(self) -> int:
        """Bytes given, alignment included."""
        return self._end - self._tail

    def allocate_persistent_buffer(self, size: int, alignment: int) -> int:
        """Return the address of *size* bytes that are never taken back.

        Raises:
            ArenaTooSmallError: the arena has not that much left.
        """
        address = align_down(self._tail - size, alignment)
        if address < self._start:
            raise too_small("persistent memory", size, size - (self._start - address))
        self._tail = address
        return address


class NonPersistentArenaBufferAllocator:
    """One resizable buffer and temporary memory, in an arena of their own.

    Unlike in the single arena, a second resizable buffer is refused. The methods are those of
    :class:`~delegraph.micro.single_arena.NonPersistentBufferAllocator`.

    Args:
        size: bytes of the arena.
        start: its address.
    """

    def __init__(self, size: int, start: int = 0) -> None:
        self._head = Head(start)
        self._end = start + size
        self._has_resizable_buffer = False

    @property
    def overlay_memory_address(self) -> int:
        """Where the arena starts."""
        return self._head.start

    @property
    def non_persistent_used_bytes(self) -> int:
        """Bytes of buffer and temporary memory."""
        return self._head.used_bytes

    def allocate_resizable_buffer(self, size: int, alignment: int) -> int:
        """Return the address of the one resizable buffer.

        Raises:
            ArenaTooSmallError: the arena is smaller.
            StateError: there is one already, or temporary memory lies after it.
        """
        if self._has_resizable_buffer:
            raise StateError("there is a resizable buffer; deallocate_resizable_buffer() first")
        address = align(self._head.start, alignment)
        self.resize_buffer(address, size, alignment)
        self._has_resizable_buffer = True
        return address

    def resize_buffer(self, address: int, size: int, alignment: int) -> None:
        """Give the resizable buffer another size."""
        self._head.resize(address, size, alignment, self._end)

    def deallocate_resizable_buffer(self, address: int) -> None:
        """Make the resizable buffer empty; another may follow."""
        self.resize_buffer(address, 0, 1)
        self._has_resizable_buffer = False

    def reserve_non_persistent_overlay_memory(self, size: int, alignment: int) -> None:
        """Make the resizable buffer hold *size* bytes."""
        self.resize_buffer(align(self._head.start, alignment), size, alignment)

    def allocate_temp(self, size: int, alignment: int) -> int:
        """Return the address of *size* temporary bytes."""
        return self._head.allocate_temp(size, alignment, self._end)

    def deallocate_temp(self, address: int) -> None:
        """Note that temporary memory is no longer used."""
        self._head.deallocate_temp(address)

    def is_all_temp_deallocated(self) -> bool:
        """Return whether every temporary allocation was deallocated."""
        return self._head.is_all_temp_deallocated()

    def reset_temp_allocations(self) -> None:
        """Take all temporary memory back."""
        self._head.reset_temp()

    def available_memory(self, alignment: int) -> int:
        """Return how many aligned bytes are free."""
        free = align_down(self._end, alignment) - align(self._head.temp, alignment)
        return max(free, 0)
