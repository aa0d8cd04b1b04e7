"""NAIVE: no two tensors share memory."""

from __future__ import annotations

from collections.abc import Sequence

from delegraph.memory.records import ObjectsAssignment, Size, TensorUsageRecord


def naive(records: Sequence[TensorUsageRecord]) -> ObjectsAssignment[Size]:
    """Return a separate object for each of *records*.

    Source:
        NaiveAssignment, tflite/delegates/gpu/common/memory_management/naive_assignment.h.
    """
    return ObjectsAssignment(list(range(len(records))), [record.size for record in records])
