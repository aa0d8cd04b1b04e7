"""Checks memory plans against their records, independently of the planners."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from delegraph.memory.records import (
    ObjectsAssignment,
    OffsetsAssignment,
    TensorUsageRecord,
    byte_records,
)


class Violation(NamedTuple):
    """One fault of a plan: the records that it concerns, and the problem.

    Attributes:
        records: positions of the one or two records that the fault concerns.
        problem: text that describes the fault with its numbers.
    """

    records: tuple[int, ...]
    problem: str


def verify_plan(
    records: Sequence[TensorUsageRecord],
    plan: OffsetsAssignment | ObjectsAssignment[Any],
    alignment: int = 1,
) -> list[Violation]:
    """Return the faults of *plan*; an empty list for a correct plan.

    Tensors in use at the same task must not share a byte, or an object. Offsets must be multiples
    of *alignment* and within the buffer; objects must be as large as the tensors that use them, in
    every dimension.

    Raises:
        ArgumentError: *plan* has offsets, but records are not in bytes or are invalid.

    >>> records = [TensorUsageRecord(8, 0, 1), TensorUsageRecord(8, 1, 2)]
    >>> verify_plan(records, OffsetsAssignment([0, 8], 16))
    []
    >>> for violation in verify_plan(records, OffsetsAssignment([0, 4], 12)):
    ...     print(*violation, sep=": ")
    (0, 1): bytes 0 to 8 during tasks 0 to 1 overlap bytes 4 to 12 during tasks 1 to 2
    """
    if isinstance(plan, ObjectsAssignment):
        return [*_object_violations(records, plan)]
    return [*_offset_violations(records, plan, alignment), *_overlaps(records, plan)]


def _offset_violations(
    records: Sequence[TensorUsageRecord], plan: OffsetsAssignment, alignment: int
) -> Iterator[Violation]:
    if len(plan.offsets) != len(records):
        yield Violation((), f"{len(plan.offsets)} offsets for {len(records)} records")
        return
    sizes = (size for size, _, _ in byte_records(records))
    for index, (size, offset) in enumerate(zip(sizes, plan.offsets, strict=True)):
        end = offset + size
        if offset < 0 or end > plan.total_size:
            problem = f"bytes {offset} to {end} are not within the buffer of {plan.total_size}"
            yield Violation((index,), problem)
        if offset % alignment:
            yield Violation((index,), f"offset {offset} is not a multiple of {alignment}")


def _overlaps(records: Sequence[TensorUsageRecord], plan: OffsetsAssignment) -> Iterator[Violation]:
    if not records or len(plan.offsets) != len(records):
        return
    table = np.array([tuple(record) for record in records], np.int64)
    sizes, firsts, lasts = table.T
    starts = np.array(plan.offsets, np.int64)
    ends = starts + sizes
    for i in range(len(records)):
        later = slice(i + 1, None)
        in_time = (firsts[later] <= lasts[i]) & (lasts[later] >= firsts[i])
        in_bytes = (starts[later] < ends[i]) & (ends[later] > starts[i])
        both_have_bytes = (sizes[later] > 0) & (sizes[i] > 0)
        for j in i + 1 + np.flatnonzero(in_time & in_bytes & both_have_bytes):
            places = (
                f"bytes {starts[k]} to {ends[k]} during tasks {firsts[k]} to {lasts[k]}"
                for k in (i, j)
            )
            yield Violation((i, int(j)), " overlap ".join(places))


def _object_violations(
    records: Sequence[TensorUsageRecord], plan: ObjectsAssignment[Any]
) -> Iterator[Violation]:
    if len(plan.object_ids) != len(records):
        yield Violation((), f"{len(plan.object_ids)} object ids for {len(records)} records")
        return
    users: dict[int, list[int]] = {}
    for index, object_id in enumerate(plan.object_ids):
        if not 0 <= object_id < len(plan.object_sizes):
            count = len(plan.object_sizes)
            yield Violation((index,), f"object {object_id} does not exist, there are {count}")
            continue
        users.setdefault(object_id, []).append(index)
        size, room = records[index].size, plan.object_sizes[object_id]
        if np.any(np.greater(size, room)):
            yield Violation((index,), f"size {size} does not fit object {object_id} of {room}")
    for object_id, sharing in users.items():
        sharing.sort(key=lambda index: records[index].first_task)
        latest = sharing[0]  # record whose use ends last so far
        for index in sharing[1:]:
            if records[index].first_task <= records[latest].last_task:
                yield Violation((latest, index), f"both use object {object_id} at the same task")
            latest = max(latest, index, key=lambda i: records[i].last_task)
