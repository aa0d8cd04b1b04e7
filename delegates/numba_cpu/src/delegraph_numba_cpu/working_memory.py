"""Memory that programs need while they run: one buffer for all programs of a subgraph."""

from __future__ import annotations

from delegraph.memory import aligned_buffer


class WorkingMemory:
    """A buffer whose users take turns: what it holds is lost when one of them is done.

    Attributes:
        buffer: the bytes, uint8; another array when it has grown, so users look before each run.
    """

    def __init__(self) -> None:
        self.buffer = aligned_buffer(0)

    def reserve(self, size: int) -> None:
        """Let there be at least *size* bytes; it never gets smaller."""
        if size > self.buffer.nbytes:
            self.buffer = aligned_buffer(size)
