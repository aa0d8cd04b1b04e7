"""GREEDY_BY_BREADTH: tasks that use the most memory come first."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from delegraph.memory.records import ByteRecord, ObjectsAssignment
from delegraph.memory.task_profiles import num_tasks


def greedy_by_breadth(records: Sequence[ByteRecord]) -> ObjectsAssignment[int]:
    """Assign each tensor of *records* to the smallest free object that is large enough.

    If no object is large enough, the largest free object grows, or a new object is created. The
    breadth of a task is the sum of the sizes in use. Tasks of greater breadth come first, and
    within a task larger tensors.

    Source:
        GreedyByBreadthAssignment, tflite/delegates/gpu/common/memory_management/
        greedy_by_breadth_assignment.cc.
    """
    object_ids = [0] * len(records)
    object_sizes: list[int] = []
    schedules: list[list[tuple[int, int]]] = []
    for tensor in _by_breadth(records):
        size, first_task, last_task = records[tensor]
        for object_id in _by_preference(object_sizes, size):
            if _is_free(schedules[object_id], first_task, last_task):
                break
        else:
            object_id = len(object_sizes)
            object_sizes.append(size)
            schedules.append([])
        insort(schedules[object_id], (first_task, last_task))
        object_sizes[object_id] = max(object_sizes[object_id], size)
        object_ids[tensor] = object_id
    return ObjectsAssignment(object_ids, object_sizes)


def _by_breadth(records: Sequence[ByteRecord]) -> list[int]:
    """Return the positions of *records*, sorted by the broadest task of each, then by size."""
    tasks = num_tasks(records)
    change = np.zeros(tasks + 1, np.int64)
    for size, first_task, last_task in records:
        change[first_task] += size
        change[last_task + 1] -= size
    breadth = np.cumsum(change[:tasks])
    ranks = np.empty(tasks, np.int64)
    ranks[np.argsort(-breadth, kind="stable")] = np.arange(tasks)
    lowest = _RangeMinimum(ranks)
    keys = [(lowest(first, last), -size, i) for i, (size, first, last) in enumerate(records)]
    return [tensor for _, _, tensor in sorted(keys)]


def _by_preference(object_sizes: Sequence[int], size: int) -> Iterator[int]:
    """Yield ids of objects of at least *size*, smallest first, then the others, largest first.

    *object_sizes* has the size of each object, by id.
    """
    yield from sorted(
        range(len(object_sizes)),
        key=lambda i: (object_sizes[i] < size, abs(object_sizes[i] - size), i),
    )


def _is_free(schedule: Sequence[tuple[int, int]], first_task: int, last_task: int) -> bool:
    place = bisect_left(schedule, (last_task + 1,))  # earlier uses start early enough
    return place == 0 or schedule[place - 1][1] < first_task


class _RangeMinimum:
    """Finds the minimum of any range of *values*, by a table of minima over spans of 2^k values."""

    def __init__(self, values: NDArray[np.int64]) -> None:
        self._levels = [values]
        while 2 * (step := 1 << (len(self._levels) - 1)) <= len(values):
            level = self._levels[-1]
            self._levels.append(np.minimum(level[:-step], level[step:]))

    def __call__(self, first: int, last: int) -> int:
        """Return the minimum of the values at the positions *first* to *last*, both included."""
        bits = (last - first + 1).bit_length() - 1
        level = self._levels[bits]
        return int(min(level[first], level[last + 1 - (1 << bits)]))
