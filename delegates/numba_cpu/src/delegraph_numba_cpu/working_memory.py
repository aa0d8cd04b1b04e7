"""Memory that programs need while they run: one buffer for all programs of a subgraph."""

from __future__ import annotations

from delegraph.memory import aligned_buffer
from delegraph.operators.memory_limit import MemoryLimit


class WorkingMemory:
    """A buffer whose users take turns: what it holds is lost when one of them is done.

    Args:
        limit: of its size; None for what the machine has.

    Attributes:
        buffer: the bytes, uint8; another array when it has grown, so users look before each run.
    """

    def __init__(self, limit: MemoryLimit | None = None) -> None:
        self._limit = MemoryLimit.of_machine() if limit is None else limit
        self.buffer = aligned_buffer(0)

    def reserve(self, size: int) -> None:
        """Let there be at least *size* bytes; it never gets smaller.

        Raises:
            OperatorError: they are more than the limit.
        """
        if size > self.buffer.nbytes:
            self.require(size)
            self.buffer = aligned_buffer(size)

    def require(self, size: int) -> None:
        """Check that *size* bytes may be reserved.

        Raises:
            OperatorError: they are more than the limit.
        """
        self._limit.require(size, "working memory")
