"""TFLM's memory planners, which place buffers in the head of an arena.

Source:
    tflite-micro/micro/memory_planner/.
"""

from __future__ import annotations

from bisect import insort_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

from delegraph.errors import ArgumentError, StateError

ONLINE = -1
"""Value of a buffer's fixed offset which means that the planner chooses the offset."""

BYTES_PER_BUFFER = 40
"""Number of bytes of working memory that the greedy planner needs for each buffer."""

_MOST_LINEAR_BUFFERS = 1024

_MAP_WIDTH = 80
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class PlannedBuffer(NamedTuple):
    """A buffer for the planner: its size, its first and last use, and a fixed offset if any.

    Attributes:
        size: size in bytes.
        first_use: number of the first step that uses the buffer.
        last_use: number of the last step that uses the buffer.
        offline_offset: fixed offset in bytes, or :data:`ONLINE` if the planner chooses.
    """

    size: int
    first_use: int
    last_use: int
    offline_offset: int = ONLINE


class MicroMemoryPlanner(Protocol):
    """Planner interface: call :meth:`init`, add each buffer, then ask for offsets and size."""

    @property
    def buffer_count(self) -> int:
        """Number of buffers added so far."""

    @property
    def maximum_memory_size(self) -> int:
        """Size of the plan in bytes."""

    @property
    def preserves_all_tensors(self) -> bool:
        """Whether no two buffers share memory."""

    def scratch_bytes(self, buffers: int) -> int:
        """Return the bytes of working memory that the planner needs for *buffers* buffers."""

    def init(self, scratch_bytes: int) -> None:
        """Remove all buffers; *scratch_bytes* is the size of the planner's working memory."""

    def add_buffer(
        self, size: int, first_use: int, last_use: int, offline_offset: int = ONLINE
    ) -> None:
        """Add a buffer to the plan; the arguments are the fields of :class:`PlannedBuffer`.

        Raises:
            StateError: the planner accepts no more buffers.
        """

    def offset_for_buffer(self, index: int) -> int:
        """Return the offset of the first byte of buffer *index*, counted in the order of addition.

        Raises:
            ArgumentError: the buffer does not exist.
        """


class GreedyMemoryPlanner:
    """Places buffers by size, largest first, each in the first gap that is large enough.

    Buffers with a fixed offset are placed before all others, in the order of addition and without
    checks. Of buffers with equal size, the buffer added last is placed first.

    >>> planner = GreedyMemoryPlanner()
    >>> for size, first, last in ((100, 0, 1), (50, 1, 2), (80, 2, 3)):
    ...     planner.add_buffer(size, first, last)
    >>> [planner.offset_for_buffer(i) for i in range(3)], planner.maximum_memory_size
    ([0, 100, 0], 150)
    """

    preserves_all_tensors = False

    def __init__(self) -> None:
        self._most: int | None = None
        self._buffers: list[PlannedBuffer] = []
        self._offsets: Sequence[int] | None = None

    @property
    def buffer_count(self) -> int:
        """Number of buffers added so far."""
        return len(self._buffers)

    @property
    def buffers(self) -> Sequence[PlannedBuffer]:
        """The buffers, in the order in which they were added."""
        return self._buffers

    @property
    def maximum_memory_size(self) -> int:
        """Size of the plan in bytes: the end of the last buffer."""
        ends = (o + b.size for o, b in zip(self.offsets, self._buffers, strict=True))
        return max(ends, default=0)

    @property
    def offsets(self) -> Sequence[int]:
        """Offset in bytes of each buffer in the arena's head, in the order of addition."""
        if self._offsets is None:
            self._offsets = _first_fit(tuple(self._buffers))
        return self._offsets

    def scratch_bytes(self, buffers: int) -> int:
        """Return the bytes of working memory that the planner needs for *buffers* buffers."""
        return buffers * BYTES_PER_BUFFER

    def init(self, scratch_bytes: int) -> None:
        """Remove all buffers; *scratch_bytes* limits the number of buffers that can be added."""
        self._most = scratch_bytes // BYTES_PER_BUFFER
        self._buffers.clear()
        self._offsets = None

    def add_buffer(
        self, size: int, first_use: int, last_use: int, offline_offset: int = ONLINE
    ) -> None:
        """Add a buffer to the plan; the arguments are the fields of :class:`PlannedBuffer`.

        Raises:
            StateError: the working memory is too small for another buffer.
        """
        if self._most is not None and len(self._buffers) >= self._most:
            raise StateError(f"Too many buffers (max is {self._most})")
        self._buffers.append(PlannedBuffer(size, first_use, last_use, offline_offset))
        self._offsets = None

    def offset_for_buffer(self, index: int) -> int:
        """Return the offset of the first byte of buffer *index*, counted in the order of addition.

        Raises:
            ArgumentError: the buffer does not exist.
        """
        _check_index(index, len(self._buffers))
        return self.offsets[index]

    def overlapping_buffers(self) -> list[tuple[int, int]]:
        """Return the pairs of buffers that share a byte at the same step, in both orders.

        Only buffers with fixed offsets can overlap.
        """
        places = list(zip(self._buffers, self.offsets, strict=True))
        return [
            (i, j)
            for i, (a, start) in enumerate(places)
            for j, (b, other) in enumerate(places)
            if i != j and _in_use_together(a, b)
            if start < other + b.size and other < start + a.size
        ]


@lru_cache(maxsize=2)  # the same buffers are planned again for arenas of other sizes
def _first_fit(buffers: tuple[PlannedBuffer, ...]) -> Sequence[int]:
    fixed = [i for i, buffer in enumerate(buffers) if buffer.offline_offset != ONLINE]
    free = [i for i, buffer in enumerate(buffers) if buffer.offline_offset == ONLINE]
    offsets = [buffer.offline_offset for buffer in buffers]
    placed: list[tuple[int, PlannedBuffer]] = []  # by offset; equal offsets as placed
    free.sort(key=lambda i: (buffers[i].size, i), reverse=True)
    for i in (*fixed, *free):
        if offsets[i] == ONLINE:
            offsets[i] = _first_gap(placed, buffers[i])
        insort_right(placed, (offsets[i], buffers[i]), key=lambda place: place[0])
    return offsets


def _first_gap(placed: Sequence[tuple[int, PlannedBuffer]], buffer: PlannedBuffer) -> int:
    candidate = 0
    for offset, other in placed:
        if _in_use_together(buffer, other):
            if offset - candidate >= buffer.size:
                break
            candidate = max(candidate, offset + other.size)
    return candidate


def _in_use_together(a: PlannedBuffer, b: PlannedBuffer) -> bool:
    return a.first_use <= b.last_use and b.first_use <= a.last_use


class LinearMemoryPlanner:
    """Places buffers one after the other without sharing; every tensor keeps its value."""

    preserves_all_tensors = True

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._next = 0

    @property
    def buffer_count(self) -> int:
        """Number of buffers added so far."""
        return len(self._offsets)

    @property
    def maximum_memory_size(self) -> int:
        """Total size of all buffers in bytes."""
        return self._next

    def scratch_bytes(self, buffers: int) -> int:
        """Return 0 for any number of *buffers*, because the planner stores its offsets itself."""
        return 0

    def init(self, scratch_bytes: int) -> None:
        """Remove all buffers from the plan; *scratch_bytes* is ignored."""
        self._offsets.clear()
        self._next = 0

    def add_buffer(
        self, size: int, first_use: int, last_use: int, offline_offset: int = ONLINE
    ) -> None:
        """Place a buffer of *size* bytes after all buffers added before; its uses are ignored.

        Raises:
            StateError: there are already 1024 buffers.
            ArgumentError: the buffer has a fixed offset, which this planner does not support.
        """
        if offline_offset != ONLINE:
            raise ArgumentError("the linear planner takes no offline offsets; the greedy one does")
        if len(self._offsets) >= _MOST_LINEAR_BUFFERS:
            raise StateError(f"Too many buffers (max is {_MOST_LINEAR_BUFFERS})")
        self._offsets.append(self._next)
        self._next += size

    def offset_for_buffer(self, index: int) -> int:
        """Return the offset of the first byte of buffer *index*, counted in the order of addition.

        Raises:
            ArgumentError: the buffer does not exist.
        """
        _check_index(index, len(self._offsets))
        return self._offsets[index]


@dataclass(frozen=True, slots=True)
class BufferPlan:
    """Offsets of all buffers, decided in advance. Source: BufferPlan of TFLM."""

    offsets: Sequence[int]


class NonPersistentMemoryPlannerShim:
    """Planner that returns the offsets of a given plan; sizes and lifetimes are ignored.

    Its ``maximum_memory_size`` is 0, as in TFLM: the plan's memory is reserved elsewhere.
    """

    preserves_all_tensors = False
    maximum_memory_size = 0

    def __init__(self, plan: BufferPlan) -> None:
        self._plan = plan
        self._count = 0

    @property
    def buffer_count(self) -> int:
        """Number of buffers added so far."""
        return self._count

    def scratch_bytes(self, buffers: int) -> int:
        """Return 0 for any number of *buffers*, because nothing is planned."""
        return 0

    def init(self, scratch_bytes: int) -> None:
        """Reset the number of added buffers to 0; *scratch_bytes* is ignored."""
        self._count = 0

    def add_buffer(
        self, size: int, first_use: int, last_use: int, offline_offset: int = ONLINE
    ) -> None:
        """Add a buffer at the next offset of the plan; the arguments have no effect.

        Raises:
            StateError: the plan has no more offsets.
        """
        if self._count >= len(self._plan.offsets):
            raise StateError(f"the plan has {len(self._plan.offsets)} buffers, one more was added")
        self._count += 1

    def offset_for_buffer(self, index: int) -> int:
        """Return the plan's offset of buffer *index*, whether the buffer was added or not.

        Raises:
            ArgumentError: the plan has no such buffer.
        """
        _check_index(index, len(self._plan.offsets))
        return self._plan.offsets[index]


def _check_index(index: int, count: int) -> None:
    if not 0 <= index < count:
        raise ArgumentError(f"buffer {index} is out of range, there are {count}")


def memory_plan_text(planner: GreedyMemoryPlanner) -> str:
    """Return the buffers of a plan as text, with a map of 80 columns for each step.

    Each buffer has a letter that marks its bytes; ``.`` marks free bytes, and ``!`` bytes of two
    buffers. Buffers that are used at a single step have the letter ``*``.

    Source:
        GreedyMemoryPlanner::PrintMemoryPlan, tflite-micro/micro/memory_planner/.

    >>> planner = GreedyMemoryPlanner()
    >>> planner.add_buffer(60, 0, 1)
    >>> planner.add_buffer(20, 1, 1)
    >>> print(memory_plan_text(planner))  # doctest: +NORMALIZE_WHITESPACE
    0 (id=0): size=60, offset=0, first_used=0 last_used=1
    * (id=1): size=20, offset=60, first_used=1 last_used=1
       0: 000000000000000000000000000000000000000000000000000000000000.................... (1k)
       1: 000000000000000000000000000000000000000000000000000000000000******************** (1k)
    """
    places = list(zip(planner.buffers, planner.offsets, strict=True))
    lines = [
        f"{_letter(planner, i)} (id={i}): size={b.size}, offset={offset}, "
        f"first_used={b.first_use} last_used={b.last_use}"
        for i, (b, offset) in enumerate(places)
    ]
    return "\n".join([*lines, *_plan_map(planner)])


def _letter(planner: GreedyMemoryPlanner, i: int) -> str:
    buffer = planner.buffers[i]
    return "*" if buffer.first_use == buffer.last_use else _DIGITS[i % len(_DIGITS)]


def _plan_map(planner: GreedyMemoryPlanner) -> Iterator[str]:
    scale = max(_MAP_WIDTH, planner.maximum_memory_size)
    steps = max((buffer.last_use for buffer in planner.buffers), default=-1) + 1
    for step in range(steps):
        line, used = ["."] * _MAP_WIDTH, 0
        for i, (buffer, offset) in enumerate(zip(planner.buffers, planner.offsets, strict=True)):
            if not buffer.first_use <= step <= buffer.last_use:
                continue
            used += buffer.size
            for column in range(
                offset * _MAP_WIDTH // scale, (offset + buffer.size) * _MAP_WIDTH // scale
            ):
                line[column] = _letter(planner, i) if line[column] == "." else "!"
        yield f"{step:4d}: {''.join(line)} ({-(-used // 1024)}k)"
