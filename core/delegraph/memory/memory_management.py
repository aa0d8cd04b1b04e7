"""Memory strategies of TFLite's GPU delegate, with functions that select one by name.

Source:
    tflite/delegates/gpu/common/memory_management.{h,cc}.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import pairwise
from typing import Any, cast

from delegraph.errors import ArgumentError
from delegraph.memory.records import (
    ByteRecord,
    ObjectsAssignment,
    OffsetsAssignment,
    ShapeRecord,
    TensorUsageRecord,
    byte_records,
)
from delegraph.memory.strategies.equality import last_freed_equal, lowest_equal
from delegraph.memory.strategies.greedy_best import greedy_best
from delegraph.memory.strategies.greedy_by_breadth import greedy_by_breadth
from delegraph.memory.strategies.greedy_by_size import greedy_by_size, size_distance_priority
from delegraph.memory.strategies.greedy_in_order import (
    greedy_in_order,
    greedy_in_order_by_dimensions,
)
from delegraph.memory.strategies.min_cost_flow import min_cost_flow
from delegraph.memory.strategies.naive import naive
from delegraph.memory.verifier import verify_plan


class MemoryStrategy(Enum):
    """Strategies by which tensors share memory.

    Attributes:
        NAIVE: no tensors share memory.
        EQUALITY: a tensor reuses a free object of exactly its size.
        GREEDY_IN_ORDER: a tensor reuses the free object closest in size, which may grow.
        GREEDY_BY_BREADTH: like GREEDY_IN_ORDER, but tasks that use most memory come first.
        GREEDY_BY_SIZE: the largest tensors come first; as offsets, each gets the smallest gap.
        GREEDY_BEST: the smaller result of GREEDY_BY_BREADTH and GREEDY_BY_SIZE, as objects.
        MINCOSTFLOW: a minimum-cost flow decides which tensor reuses which object.
    """

    NAIVE = "NAIVE"
    EQUALITY = "EQUALITY"
    GREEDY_IN_ORDER = "GREEDY_IN_ORDER"
    GREEDY_BY_BREADTH = "GREEDY_BY_BREADTH"
    GREEDY_BY_SIZE = "GREEDY_BY_SIZE"
    GREEDY_BEST = "GREEDY_BEST"
    MINCOSTFLOW = "MINCOSTFLOW"


_IN_BYTES = {
    MemoryStrategy.GREEDY_BY_BREADTH: greedy_by_breadth,
    MemoryStrategy.GREEDY_BY_SIZE: size_distance_priority,
    MemoryStrategy.GREEDY_BEST: greedy_best,
    MemoryStrategy.MINCOSTFLOW: min_cost_flow,
}
_BHWC = 4  # number of dimensions of sizes that are shapes


def assign_objects_to_tensors(
    records: Sequence[TensorUsageRecord],
    strategy: MemoryStrategy,
    reallocation_graph: Sequence[Sequence[int]] | None = None,
) -> ObjectsAssignment[Any]:
    """Assign memory objects to tensors; tensors in use at the same task get different objects.

    Every strategy accepts sizes in bytes. NAIVE, EQUALITY and GREEDY_IN_ORDER also accept two or
    three dimensions (textures), NAIVE and EQUALITY batch, height, width and channels.

    Args:
        records: usage records in the order of their first tasks.
        strategy: strategy by which tensors share memory.
        reallocation_graph: for each tensor, the tensors that may take over its memory in any order
            of the tasks, ascending; see :func:`~delegraph.memory.reallocation_graph`. Only
            GREEDY_IN_ORDER with sizes in bytes uses it.

    Raises:
        ArgumentError: a record has a negative size or ends before it begins. Or sizes are of
            different kinds, or of a kind that the strategy does not support. Or tensors overlap
            because the records are not in order.

    >>> records = [TensorUsageRecord(16, 0, 1), TensorUsageRecord(8, 1, 2),
    ...            TensorUsageRecord(64, 2, 3)]
    >>> assign_objects_to_tensors(records, MemoryStrategy.GREEDY_IN_ORDER)
    ObjectsAssignment(object_ids=[0, 1, 0], object_sizes=[64, 8])
    """
    dimensions = _dimensions(records)
    if reallocation_graph is not None and len(reallocation_graph) != len(records):
        rows = len(reallocation_graph)
        raise ArgumentError(
            f"the graph has {rows} rows, needs one for each of {len(records)} records"
        )
    assignment: ObjectsAssignment[Any]
    if strategy is MemoryStrategy.NAIVE:
        assignment = naive(records)
    elif strategy is MemoryStrategy.EQUALITY:
        hashable = dimensions in (0, _BHWC)
        assignment = last_freed_equal(records) if hashable else lowest_equal(records)
    elif dimensions == 0:
        in_bytes = cast("Sequence[ByteRecord]", records)
        if strategy is MemoryStrategy.GREEDY_IN_ORDER:
            assignment = greedy_in_order(in_bytes, reallocation_graph)
        else:
            assignment = _IN_BYTES[strategy](in_bytes)
    elif strategy is MemoryStrategy.GREEDY_IN_ORDER and dimensions in (2, 3):
        assignment = greedy_in_order_by_dimensions(cast("Sequence[ShapeRecord]", records))
    else:
        raise ArgumentError(
            f"{strategy.name} does not support sizes of {dimensions} dimensions, needs bytes"
        )
    _check_order(records, assignment)
    return assignment


def assign_offsets_to_tensors(
    records: Sequence[TensorUsageRecord],
    strategy: MemoryStrategy,
    base_addr_align_bytes: int = 1,
    reallocation_graph: Sequence[Sequence[int]] | None = None,
) -> OffsetsAssignment:
    """Assign offsets in one buffer; tensors in use at the same task do not overlap.

    GREEDY_BY_SIZE has its own algorithm for offsets; the other strategies place objects one after
    another.

    Args:
        records: usage records with sizes in bytes, in the order of their first tasks.
        strategy: strategy by which tensors share memory.
        base_addr_align_bytes: number of bytes of which offsets are multiples. As in TFLite, only
            GREEDY_BY_SIZE uses it; for other strategies, round the sizes up.
        reallocation_graph: for each tensor, the tensors that may take over its memory, ascending.
            Only GREEDY_IN_ORDER uses it.

    Raises:
        ArgumentError: a size is negative or not in bytes, the alignment is below 1, or a record
            ends before it begins. Or tensors overlap because the records are not in order.

    >>> records = [TensorUsageRecord(10, 0, 1), TensorUsageRecord(6, 1, 2),
    ...            TensorUsageRecord(8, 2, 3)]
    >>> assign_offsets_to_tensors(records, MemoryStrategy.GREEDY_BY_SIZE, base_addr_align_bytes=4)
    OffsetsAssignment(offsets=[0, 12, 0], total_size=18)
    """
    checked = byte_records(records)
    if base_addr_align_bytes < 1:
        raise ArgumentError(f"alignment is {base_addr_align_bytes}, needs to be at least 1")
    if strategy is MemoryStrategy.GREEDY_BY_SIZE:
        return greedy_by_size(checked, base_addr_align_bytes)
    return objects_to_offsets(assign_objects_to_tensors(records, strategy, reallocation_graph))


def objects_to_offsets(assignment: ObjectsAssignment[int]) -> OffsetsAssignment:
    """Return tensors' offsets for objects of *assignment* that follow each other without gaps.

    Source:
        ObjectsToOffsets, tflite/delegates/gpu/common/memory_management.cc.

    >>> objects_to_offsets(ObjectsAssignment([0, 1, 0, 2], [10, 20, 5]))
    OffsetsAssignment(offsets=[0, 10, 0, 30], total_size=35)
    """
    starts = [0]
    for size in assignment.object_sizes:
        starts.append(starts[-1] + size)
    return OffsetsAssignment([starts[i] for i in assignment.object_ids], starts[-1])


def _dimensions(records: Sequence[TensorUsageRecord]) -> int:
    """Check *records*; return the number of dimensions that all sizes have, 0 for bytes."""
    kinds = {len(r.size) if isinstance(r.size, tuple) else 0 for r in records}
    if len(kinds) > 1:
        raise ArgumentError(f"sizes have {sorted(kinds)} dimensions, need to be all alike")
    byte_records(TensorUsageRecord(_smallest(r.size), *r[1:]) for r in records)
    return max(kinds, default=0)


def _smallest(size: int | Iterable[int]) -> int:
    return size if isinstance(size, int) else min(size, default=0)


def _check_order(records: Sequence[TensorUsageRecord], assignment: ObjectsAssignment[Any]) -> None:
    """Raise an error if objects of *assignment* overlap, which only unsorted records can cause."""
    if all(a.first_task <= b.first_task for a, b in pairwise(records)):
        return
    if violations := verify_plan(records, assignment):
        (a, b), problem = violations[0]
        raise ArgumentError(
            f"records {a} and {b}: {problem}; sort the records by their first tasks"
        )
