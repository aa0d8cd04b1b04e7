"""One arena: persistent memory at its end, buffers and temporary memory at its start.

Source:
    SingleArenaBufferAllocator, tflite-micro/micro/arena_allocator/single_arena_buffer_allocator.cc.
"""

from __future__ import annotations

from typing import Protocol

from delegraph.errors import ArenaTooSmallError, StateError
from delegraph.memory.best_fit import align


def align_down(address: int, alignment: int) -> int:
    """Return the last multiple of *alignment* at or before *address*."""
    return address // alignment * alignment


class PersistentBufferAllocator(Protocol):
    """Allocates persistent memory, which is freed when the model is closed."""

    def allocate_persistent_buffer(self, size: int, alignment: int) -> int:
        """Return the address of *size* bytes that are never freed; it is a multiple of *alignment*.

        Raises:
            ArenaTooSmallError: the arena has fewer free bytes.
        """

    @property
    def persistent_used_bytes(self) -> int:
        """Number of allocated bytes, including alignment."""


def too_small(what: str, size: int, available: int) -> ArenaTooSmallError:
    """Return the error for a request of *size* bytes of *what*, of which *available* are free."""
    missing = size - available
    return ArenaTooSmallError(
        f"{what}: {size} bytes requested, {max(available, 0)} available, {missing} missing",
        missing=missing,
    )


class HeadMemory:
    """The head of an arena: one resizable buffer, then temporary memory, up to the tail.

    Args:
        size: size of the arena in bytes.
        start: address of the arena.
    """

    def __init__(self, size: int, start: int = 0) -> None:
        self._start = self._buffer_end = self._temp_end = start
        self._tail = start + size
        # Temporary allocations in use, and their addresses added up as a checksum.
        self._temp_count = self._temp_checksum = 0

    @property
    def overlay_memory_address(self) -> int:
        """Address at which the head of the arena starts."""
        return self._start

    @property
    def non_persistent_used_bytes(self) -> int:
        """Number of bytes of the resizable buffer and temporary memory, including alignment."""
        return max(self._buffer_end, self._temp_end) - self._start

    def allocate_resizable_buffer(self, size: int, alignment: int) -> int:
        """Allocate the only resizable buffer, of *size* bytes, at the arena's start.

        The result is the buffer's address. A second call replaces the buffer.

        Raises:
            ArenaTooSmallError: the arena has fewer free bytes.
            StateError: there is temporary memory after the buffer.
        """
        address = align(self._start, alignment)
        self.resize_buffer(address, size, alignment)
        return address

    def resize_buffer(self, address: int, size: int, alignment: int) -> None:
        """Change the size of the resizable buffer, which starts at *address*, to *size* bytes.

        Raises:
            ArenaTooSmallError: the arena has fewer free bytes.
            StateError: there is temporary memory after the buffer, or *address* is not that of
                the buffer.
        """
        expected = align(self._start, alignment)
        if self._buffer_end != self._temp_end:
            raise StateError("temporary memory is in use; reset_temp_allocations() comes first")
        if address != expected:
            raise StateError(f"no resizable buffer at {address}, only the one at {expected} can be")
        if size > self._tail - expected:
            raise too_small("the resizable buffer", size, self._tail - expected)
        self._buffer_end = self._temp_end = expected + size

    def deallocate_resizable_buffer(self, address: int) -> None:
        """Set the size of the resizable buffer, which starts at *address*, to 0.

        Raises:
            StateError: there is temporary memory after the buffer, *address* is not that of
                the buffer, or the buffer is not at the start of the arena.
        """
        self.resize_buffer(address, 0, 1)

    def reserve_non_persistent_overlay_memory(self, size: int, alignment: int) -> None:
        """Set the size of the resizable buffer to *size* bytes; old contents may be overwritten.

        Raises:
            ArenaTooSmallError: the arena has fewer free bytes.
            StateError: there is temporary memory after the buffer.
        """
        self.resize_buffer(align(self._start, alignment), size, alignment)

    def allocate_temp(self, size: int, alignment: int) -> int:
        """Return the address of *size* bytes; it is a multiple of *alignment*.

        :meth:`reset_temp_allocations` frees the bytes.

        Raises:
            ArenaTooSmallError: the arena has fewer free bytes.
        """
        address = align(self._temp_end, alignment)
        if size > self._tail - address:
            raise too_small("temporary memory", size, self._tail - address)
        self._temp_end = address + size
        self._temp_count += 1
        self._temp_checksum ^= address
        return address

    def deallocate_temp(self, address: int) -> None:
        """Record that the temporary memory at *address* is unused, without checking the address.

        :meth:`reset_temp_allocations` frees all temporary memory at once.
        """
        self._temp_count -= 1
        self._temp_checksum ^= address

    def is_all_temp_deallocated(self) -> bool:
        """Whether every temporary allocation was deallocated."""
        return self._temp_count == 0 and self._temp_checksum == 0

    def reset_temp_allocations(self) -> None:
        """Free all temporary memory.

        Raises:
            StateError: a temporary allocation was not deallocated.
        """
        if not self.is_all_temp_deallocated():
            raise StateError("temporary memory is in use; deallocate_temp() comes first")
        self._temp_end = self._buffer_end

    def available_memory(self, alignment: int) -> int:
        """Return the number of free bytes between head and tail, both aligned to *alignment*.

        The result is 0 where TFLM's unsigned result overflows.
        """
        free = align_down(self._tail, alignment) - align(self._temp_end, alignment)
        return max(free, 0)


class SingleArenaBufferAllocator(HeadMemory):
    """Allocates addresses in one arena without touching its memory.

    Persistent memory grows from the end (the tail) towards the head, which is one resizable buffer
    followed by temporary memory. As in TFLM, the tail may grow up to the resizable buffer, so it
    can overwrite temporary memory that is still in use.

    Args:
        size: size of the arena in bytes.
        start: address of the arena; addresses, not offsets, are aligned.

    >>> arena = SingleArenaBufferAllocator(256)
    >>> arena.allocate_persistent_buffer(20, alignment=16), arena.persistent_used_bytes
    (224, 32)
    >>> buffer = arena.allocate_resizable_buffer(10, alignment=16)
    >>> arena.allocate_temp(8, alignment=4), arena.non_persistent_used_bytes
    (12, 20)
    """

    def __init__(self, size: int, start: int = 0) -> None:
        super().__init__(size, start)
        self._end = self._tail

    @property
    def buffer_size(self) -> int:
        """Size of the arena in bytes."""
        return self._end - self._start

    @property
    def persistent_used_bytes(self) -> int:
        """Number of bytes of the tail.

        See :class:`PersistentBufferAllocator`.
        """
        return self._end - self._tail

    @property
    def used_bytes(self) -> int:
        """Number of bytes in use in head and tail."""
        return self.non_persistent_used_bytes + self.persistent_used_bytes

    def allocate_persistent_buffer(self, size: int, alignment: int) -> int:
        """Return the address of *size* bytes at the tail; it is a multiple of *alignment*.

        The bytes are never freed. See :class:`PersistentBufferAllocator`.
        """
        address = align_down(self._tail - size, alignment)
        if address < self._buffer_end:
            available = size - (self._buffer_end - address)
            raise too_small("persistent memory", size, available)
        self._tail = address
        return address
