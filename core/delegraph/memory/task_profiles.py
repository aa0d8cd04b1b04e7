"""The tensors in use at each task, and their sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from delegraph.memory.records import ByteRecord, TensorUsageRecord, byte_records

if TYPE_CHECKING:
    from numpy.typing import NDArray


class TensorUsageWithIndex(NamedTuple):
    """A usage record with its position among all records."""

    usage_record: TensorUsageRecord
    idx: int


TaskProfile: TypeAlias = list[TensorUsageWithIndex]
"""Tensors in use at a task, the largest first; of equal tensors, the lower index first."""


def calculate_task_profiles(records: Sequence[TensorUsageRecord]) -> list[TaskProfile]:
    """Return the tensors in use at each task from 0 to the last, as a list for each task.

    The tensors are those of *records*, largest first.

    Source:
        CalculateTaskProfiles, tflite/delegates/gpu/common/memory_management/internal.cc.

    Raises:
        ArgumentError: a record is not in bytes or is invalid.

    >>> a, b = TensorUsageRecord(8, 0, 1), TensorUsageRecord(16, 1, 2)
    >>> [[usage.idx for usage in profile] for profile in calculate_task_profiles([a, b])]
    [[0], [1, 0], [1]]
    """
    checked = byte_records(records)
    profiles: list[TaskProfile] = [[] for _ in range(num_tasks(checked))]
    for index in sorted(range(len(checked)), key=lambda i: -checked[i][0]):
        usage = TensorUsageWithIndex(records[index], index)
        for task in range(usage.usage_record.first_task, usage.usage_record.last_task + 1):
            profiles[task].append(usage)
    return profiles


def calculate_positional_maximums(records: Sequence[TensorUsageRecord]) -> list[int]:
    """Return, for each k, the largest size of a record that is the k-th largest at some task.

    In any assignment of objects, the k-th largest object is at least that large.

    Source:
        CalculatePositionalMaximums, tflite/delegates/gpu/common/memory_management/internal.cc.

    Raises:
        ArgumentError: a record is not in bytes or is invalid.

    >>> records = [(8, 0, 1), (16, 1, 2), (12, 3, 3), (2, 3, 3)]
    >>> calculate_positional_maximums([TensorUsageRecord(*record) for record in records])
    [16, 8]
    """
    maximums: list[int] = positional_maximums(byte_records(records)).tolist()
    return maximums


def positional_maximums(records: Sequence[ByteRecord]) -> NDArray[np.int64]:
    """Return the positional maximums as an array, ``[n], int64``; records must be checked."""
    maximums = np.zeros(len(records), np.int64)
    largest_crowd = 0
    for sizes in _crowds(records):
        np.maximum(maximums[: len(sizes)], sizes, out=maximums[: len(sizes)])
        largest_crowd = max(largest_crowd, len(sizes))
    return maximums[:largest_crowd]


def num_tasks(records: Sequence[ByteRecord]) -> int:
    """Return the number of tasks up to the last task in which a tensor is in use."""
    return max((last_task for _, _, last_task in records), default=-1) + 1


def _crowds(records: Sequence[ByteRecord]) -> Iterator[NDArray[np.int64]]:
    """Yield the sizes of the tensors in use at a task, descending, for some of the tasks.

    Each of these tasks is the latest first use of a tensor before some tensor's last use. The
    tensors in use at any other task are all in use at one of these tasks.
    """
    table = np.array(records, np.int64).reshape(-1, 3)
    sizes, firsts, lasts = table[np.argsort(-table[:, 0], kind="stable")].T
    starts = np.unique(firsts)
    ends = np.unique(lasts)
    # The last start before each end that is followed by another start.
    tasks = np.unique(starts[np.searchsorted(starts, ends, "right") - 1])
    for task in tasks:
        yield sizes[(firsts <= task) & (task <= lasts)]
