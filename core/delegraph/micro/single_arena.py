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


class NonPersistentBufferAllocator(Protocol):
    """Allocates one resizable buffer, and temporary memory after it."""

    def allocate_resizable_buffer(self, size: int, alignment: int) -> int:
        """Allocate the only resizable buffer, of *size* bytes, at the arena's start.

        The result is the buffer's address.

        Raises:
            ArenaTooSmallError: the arena has fewer free bytes.
            StateError: there is temporary memory after the buffer.
        """

    def resize_buffer(self, address: int, size: int, alignment: int) -> None:
        """Change the size of the resizable buffer, which starts at *address*, to *size* bytes.

        Raises:
            ArenaTooSmallError: the arena has fewer free bytes.
            StateError: there is temporary memory after the buffer, or *address* is not that of
                the buffer.
        """

    def deallocate_resizable_buffer(self, address: int) -> None:
        """Set the size of the resizable buffer, which starts at *address*, to 0.

        Raises:
            StateError: there is temporary memory after the buffer, *address* is not that of
                the buffer, or the buffer is not at the start of the arena.
        """

    def reserve_non_persistent_overlay_memory(self, size: int, alignment: int) -> None:
        """Set the size of the resizable buffer to *size* bytes; old contents may be overwritten.

        Raises:
            ArenaTooSmallError: the arena has fewer free bytes.
            StateError: there is temporary memory after the buffer.
        """

    def allocate_temp(self, size: int, alignment: int) -> int:
        """Return the address of *size* bytes; it is a multiple of *alignment*.

        :meth:`reset_temp_allocations` frees the bytes.

        Raises:
            ArenaTooSmallError: the arena has fewer free bytes.
        """

    def deallocate_temp(self, address: int) -> None:
        """Record that the temporary memory at *address* is unused.

        :meth:`reset_temp_allocations` frees all temporary memory at once.
        """

    def is_all_temp_deallocated(self) -> bool:
        """Whether every temporary allocation was deallocated."""

    def reset_temp_allocations(self) -> None:
        """Free all temporary memory.

        Raises:
            StateError: a temporary allocation was not deallocated.
        """

    def available_memory(self, alignment: int) -> int:
        """Return the number of free bytes between head and tail, both aligned to *alignment*."""

    @property
    def overlay_memory_address(self) -> int:
        """Address at which the head of the arena starts."""

    @property
    def non_persistent_used_bytes(self) -> int:
        """Number of bytes of the resizable buffer and temporary memory, including alignment."""


class TempCount:
    """Counts the temporary allocations in use, and adds up their addresses as a checksum."""

    def __init__(self) -> None:
        self._count = 0
        self._checksum = 0

    def allocated(self, address: int) -> None:
        """Count a new temporary allocation at *address*."""
        self._count += 1
        self._checksum ^= address

    def deallocated(self, address: int) -> None:
        """Remove *address* from the count, without checking that it was allocated."""
        self._count -= 1
        self._checksum ^= address

    def is_balanced(self) -> bool:
        """Whether every counted allocation was deallocated."""
        return self._count == 0 and self._checksum == 0


class Head:
    """The resizable buffer at the start of an arena, and temporary memory after it.

    Attributes:
        start: address of the arena.
        head: end of the resizable buffer.
        temp: end of the temporary memory.
    """

    def __init__(self, start: int) -> None:
        self.start = self.head = self.temp = start
        self._temps = TempCount()

    def resize(self, address: int, size: int, alignment: int, end: int) -> None:
        """Change the size of the buffer at *address*; the memory ends at *end*.

        See :meth:`NonPersistentBufferAllocator.resize_buffer`.
        """
        expected = align(self.start, alignment)
        if self.head != self.temp:
            raise StateError("temporary memory is in use; reset_temp_allocations() comes first")
        if address != expected:
            raise StateError(f"no resizable buffer at {address}, only the one at {expected} can be")
        if size > end - expected:
            raise too_small("the resizable buffer", size, end - expected)
        self.head = self.temp = expected + size

    def allocate_temp(self, size: int, alignment: int, end: int) -> int:
        """Return the address of *size* bytes of temporary memory; the memory ends at *end*.

        See :meth:`NonPersistentBufferAllocator.allocate_temp`.
        """
        address = align(self.temp, alignment)
        if size > end - address:
            raise too_small("temporary memory", size, end - address)
        self.temp = address + size
        self._temps.allocated(address)
        return address

    def deallocate_temp(self, address: int) -> None:
        """Record that the temporary memory at *address* is unused."""
        self._temps.deallocated(address)

    def is_all_temp_deallocated(self) -> bool:
        """Whether all temporary memory is unused."""
        return self._temps.is_balanced()

    def reset_temp(self) -> None:
        """Free all temporary memory; memory still in use is an error."""
        if not self._temps.is_balanced():
            raise StateError("temporary memory is in use; deallocate_temp() comes first")
        self.temp = self.head

    @property
    def used_bytes(self) -> int:
        """Number of bytes of the buffer and the temporary memory."""
        return max(self.head, self.temp) - self.start


def too_small(what: str, size: int, available: int) -> ArenaTooSmallError:
    """Return the error for a request of *size* bytes that the arena cannot give.

    Args:
        what: name of the memory that was requested.
        size: number of requested bytes.
        available: number of free bytes.
    """
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
        self._head = Head(start)
        self._tail = start + size

    @property
    def overlay_memory_address(self) -> int:
        """Address of the resizable buffer.

        See :class:`NonPersistentBufferAllocator`.
        """
        return self._head.start

    @property
    def non_persistent_used_bytes(self) -> int:
        """Number of bytes of the head.

        See :class:`NonPersistentBufferAllocator`.
        """
        return self._head.used_bytes

    def allocate_resizable_buffer(self, size: int, alignment: int) -> int:
        """Allocate *size* bytes as the resizable buffer; several calls are allowed.

        See :class:`NonPersistentBufferAllocator`.
        """
        address = align(self._head.start, alignment)
        self.resize_buffer(address, size, alignment)
        return address

    def resize_buffer(self, address: int, size: int, alignment: int) -> None:
        """Change the size of the resizable buffer, which starts at *address*, to *size*.

        See :class:`NonPersistentBufferAllocator`.
        """
        self._head.resize(address, size, alignment, self._tail)

    def deallocate_resizable_buffer(self, address: int) -> None:
        """Set the size of the buffer at *address* to 0.

        See :class:`NonPersistentBufferAllocator`.
        """
        self.resize_buffer(address, 0, 1)

    def reserve_non_persistent_overlay_memory(self, size: int, alignment: int) -> None:
        """Set the size of the resizable buffer to *size* bytes.

        See :class:`NonPersistentBufferAllocator`.
        """
        self.resize_buffer(align(self._head.start, alignment), size, alignment)

    def allocate_temp(self, size: int, alignment: int) -> int:
        """Return the address of *size* bytes of temporary memory; it is a multiple of *alignment*.

        See :class:`NonPersistentBufferAllocator`.
        """
        return self._head.allocate_temp(size, alignment, self._tail)

    def deallocate_temp(self, address: int) -> None:
        """Record that the temporary memory at *address* is unused.

        See :class:`NonPersistentBufferAllocator`.
        """
        self._head.deallocate_temp(address)

    def is_all_temp_deallocated(self) -> bool:
        """Whether all temporary memory is unused.

        See :class:`NonPersistentBufferAllocator`.
        """
        return self._head.is_all_temp_deallocated()

    def reset_temp_allocations(self) -> None:
        """Free all temporary memory.

        See :class:`NonPersistentBufferAllocator`.
        """
        self._head.reset_temp()

    def available_memory(self, alignment: int) -> int:
        """Return the number of free bytes; 0 where TFLM's unsigned result overflows."""
        free = align_down(self._tail, alignment) - align(self._head.temp, alignment)
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
        return self._end - self._head.start

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
        if address < self._head.head:
            available = size - (self._head.head - address)
            raise too_small("persistent memory", size, available)
        self._tail = address
        return address
