"""Arenas: persistent memory at the end, buffers and temporary memory at the start; one or two.

Source:
    tflite-micro/micro/arena_allocator/.
"""

from __future__ import annotations

from delegraph.errors import ArenaTooSmallError, StateError
from delegraph.memory.best_fit import align


def align_down(address: int, alignment: int) -> int:
    """Return the last multiple of *alignment* at or before *address*."""
    return address // alignment * alignment


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
        """Number of bytes of the tail, including alignment."""
        return self._end - self._tail

    @property
    def used_bytes(self) -> int:
        """Number of bytes in use in head and tail."""
        return self.non_persistent_used_bytes + self.persistent_used_bytes

    def allocate_persistent_buffer(self, size: int, alignment: int) -> int:
        """Return the address of *size* bytes at the tail; it is a multiple of *alignment*.

        The bytes are never freed.

        Raises:
            ArenaTooSmallError: the arena has fewer free bytes.
        """
        address = align_down(self._tail - size, alignment)
        if address < self._buffer_end:
            available = size - (self._buffer_end - address)
            raise too_small("persistent memory", size, available)
        self._tail = address
        return address


class RecordingSingleArenaBufferAllocator(SingleArenaBufferAllocator):
    """Single arena that counts successful requests; temporary memory is not recorded.

    Attributes:
        requested_head_bytes: size last requested for the resizable buffer.
        requested_tail_bytes: bytes requested as persistent memory, without alignment.
        recorded_used_bytes: bytes by which head and tail grew, with alignment.
        allocation_count: number of persistent allocations.

    >>> arena = RecordingSingleArenaBufferAllocator(256)
    >>> _ = arena.allocate_persistent_buffer(20, alignment=16)
    >>> arena.requested_tail_bytes, arena.recorded_used_bytes, arena.allocation_count
    (20, 32, 1)
    """

    def __init__(self, size: int, start: int = 0) -> None:
        super().__init__(size, start)
        self.requested_head_bytes = 0
        self.requested_tail_bytes = 0
        self.recorded_used_bytes = 0
        self.allocation_count = 0

    @property
    def requested_bytes(self) -> int:
        """Number of bytes requested in head and tail."""
        return self.requested_head_bytes + self.requested_tail_bytes

    def resize_buffer(self, address: int, size: int, alignment: int) -> None:
        """Resize the buffer at *address* and record it; a smaller size lowers the counts."""
        before = self._buffer_end
        super().resize_buffer(address, size, alignment)
        self.requested_head_bytes = size
        self.recorded_used_bytes += self._buffer_end - before

    def allocate_persistent_buffer(self, size: int, alignment: int) -> int:
        """Allocate *size* bytes of persistent memory, count them, and return their address."""
        before = self.persistent_used_bytes
        address = super().allocate_persistent_buffer(size, alignment)
        self.requested_tail_bytes += size
        self.recorded_used_bytes += self.persistent_used_bytes - before
        self.allocation_count += 1
        return address


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
