"""GREEDY_BEST: runs two greedy strategies and takes the smaller result."""

from __future__ import annotations

from collections.abc import Sequence

from delegraph.memory.records import ByteRecord, ObjectsAssignment
from delegraph.memory.strategies.greedy_by_breadth import greedy_by_breadth
from delegraph.memory.strategies.greedy_by_size import size_distance_priority


def greedy_best(records: Sequence[ByteRecord]) -> ObjectsAssignment[int]:
    """Return the smaller result of GREEDY_BY_SIZE and GREEDY_BY_BREADTH, as objects.

    *records* are in the order of their first tasks.

    Source:
        BestGreedy, tflite/delegates/gpu/common/memory_management.cc.
    """
    return min(size_distance_priority(records), greedy_by_breadth(records), key=_total)


def _total(assignment: ObjectsAssignment[int]) -> int:
    return sum(assignment.object_sizes)
