"""Working memory of programs, and the layout of blocks in it."""

from __future__ import annotations

from delegraph.memory import aligned_buffer
from delegraph.operators import MemoryLimit
from delegraph_numba_cpu.instructions.memory import SLACK, Address, Memory, Row


class WorkingMemory:
    """A buffer shared by programs that run one after another; its contents do not survive a run.

    Args:
        limit: largest size in bytes; None for no limit.

    Attributes:
        limit: largest size in bytes, of the buffer and of copies of constants.
        data: the buffer, uint8. Growing replaces the array, so users read this attribute before
            each run.
    """

    def __init__(self, limit: MemoryLimit | None = None) -> None:
        self.limit = MemoryLimit.of_machine() if limit is None else limit
        self.data = aligned_buffer(0)

    def reserve(self, size: int) -> None:
        """Grow the buffer to at least *size* bytes; the buffer never shrinks.

        Raises:
            OperatorError: *size* exceeds the limit.
        """
        if size > self.data.nbytes:
            self.require(size)
            self.data = aligned_buffer(size)

    def require(self, size: int) -> None:
        """Check that a buffer of *size* bytes is allowed.

        Raises:
            OperatorError: *size* exceeds the limit.
        """
        self.limit.require(size, "working memory")


def planned(rows: list[Row]) -> tuple[int, dict[int, int]]:
    """Return the size of a program's working memory in bytes, and the offset of each block in it.

    Blocks that are not used at the same time may overlap.

    Args:
        rows: the kernel calls; each block's first and last use are known.

    Returns:
        The size, and the offsets in bytes by the ``id`` of each block's :class:`Memory`.
    """
    from delegraph.memory import SimpleMemoryArena  # here: kept programs have a layout

    groups = _groups(rows)
    groups.sort(key=lambda group: (-max(m.size for m in group), group[0].first))
    arena = SimpleMemoryArena()
    offsets = {}
    for i, group in enumerate(groups):
        size = max(memory.size for memory in group) + SLACK
        found = arena.allocate(size, i, group[0].first, group[-1].last)
        offsets.update({id(memory): found.offset for memory in group})
    return arena.high_water_mark, offsets


def _groups(rows: list[Row]) -> list[list[Memory]]:
    """Return the blocks of working memory in groups; the blocks of a group share one place."""
    groups: dict[int, list[Memory]] = {}
    for i, row in enumerate(rows):
        for memory in row.memories:
            if memory.tensor is None and not memory.address and id(memory) not in groups:
                groups[id(memory)] = _replaced(row, i, memory, groups)
                groups[id(memory)].append(memory)
    return list({id(group): group for group in groups.values()}.values())


def _replaced(
    row: Row, number: int, memory: Memory, groups: dict[int, list[Memory]]
) -> list[Memory]:
    """Return the group of blocks whose place a kernel call's result may take over; may be empty.

    The call is the last to read that group, and it reads each element before it writes there. The
    groups of blocks are given by the ``id`` of their :class:`Memory`.
    """
    target = row.words.get("target")
    if isinstance(target, Address) and target.memory is memory and not target.offset:
        for name in row.replaceable:
            source = row.words[name]
            if source.offset or source.memory.last != number or source.memory is memory:
                continue
            if id(source.memory) in groups and source.memory.size == memory.size:
                return groups[id(source.memory)]
    return []
