"""A single arena that counts the bytes requested from it.

Source:
    RecordingSingleArenaBufferAllocator,
    tflite-micro/micro/arena_allocator/recording_single_arena_buffer_allocator.cc.
"""

from __future__ import annotations

from delegraph.micro.single_arena import SingleArenaBufferAllocator


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
