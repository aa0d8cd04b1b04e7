"""A micro allocator that records the purpose of all persistent memory.

Source:
    RecordingMicroAllocator, tflite-micro/micro/recording_micro_allocator.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from delegraph.micro.allocator import Kept, MicroAllocator
from delegraph.micro.arena_allocators import (
    RecordingSingleArenaBufferAllocator,
    SingleArenaBufferAllocator,
)


@dataclass(slots=True)
class RecordedAllocation:
    """Requested bytes, used bytes and number of items of one kind of allocation.

    Attributes:
        requested_bytes: requested bytes, without alignment.
        used_bytes: used bytes, with alignment.
        count: number of tensors, structures or allocations; the report names the items.
    """

    requested_bytes: int = 0
    used_bytes: int = 0
    count: int = 0


class RecordingMicroAllocator(MicroAllocator):
    """A :class:`MicroAllocator` with a record of each kind of persistent memory.

    Attributes:
        recorded: mapping from each kind, also unused ones, to its record.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        kinds: list[Kept] = [kind for kind in Kept if kind is not Kept.OTHER]
        self.recorded = {kind: RecordedAllocation() for kind in kinds}

    @staticmethod
    def _arena_allocator() -> type[SingleArenaBufferAllocator]:
        return RecordingSingleArenaBufferAllocator

    def keep(self, what: Kept, size: int, alignment: int, count: int = 1) -> int:
        """Record and allocate *size* bytes for *count* items of kind *what*; return the address.

        The address is a multiple of *alignment*.
        """
        before = self.persistent_used_bytes
        address = super().keep(what, size, alignment, count)
        record = self.recorded.get(what)
        if record is not None:
            record.requested_bytes += size
            record.used_bytes += self.persistent_used_bytes - before
            record.count += count
        return address

    def report(self) -> str:
        """Return the report that TFLM prints: totals, then each kind of allocation in use."""
        head = self.used_bytes - self.persistent_used_bytes
        totals = {"total": self.used_bytes, "head": head, "tail": self.persistent_used_bytes}
        lines = [f"Arena allocation {name} {count} bytes" for name, count in totals.items()]
        for kind, record in self.recorded.items():
            name, units = kind.value
            if record.requested_bytes or record.used_bytes:
                lines.append(
                    f"'{name}' used {record.used_bytes} bytes with alignment overhead "
                    f"(requested {record.requested_bytes} bytes for {record.count} {units})"
                )
        return "\n".join(f"[RecordingMicroAllocator] {line}" for line in lines)
