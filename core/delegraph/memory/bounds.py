"""How much memory no plan can do without."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.memory.records import TensorUsageRecord, byte_records


def lower_bound(records: Sequence[TensorUsageRecord], alignment: int = 1) -> int:
    """Return the bytes in use at the busiest task: no buffer can be smaller.

    With an alignment, tensors count with their padding, except for the largest padding of those in
    use at a task, as the tensor at the end of a buffer needs none.

    Raises:
        ArgumentError: a record is not in bytes, or makes no sense; or *alignment* is below 1.

    >>> lower_bound([TensorUsageRecord(100, 0, 1), TensorUsageRecord(80, 1, 2)])
    180
    >>> lower_bound([TensorUsageRecord(100, 0, 1), TensorUsageRecord(80, 1, 2)], alignment=64)
    208
    """
    return int(live_bytes(records, alignment)[1].max(initial=0))


def live_bytes(
    records: Sequence[TensorUsageRecord], alignment: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return tasks and the bytes in use there, as :func:`lower_bound` counts, ``[n], int64``.

    The tasks are those at which a tensor comes into use; in between no more can be in use.

    Raises:
        ArgumentError: as for :func:`lower_bound`.
    """
    if alignment < 1:
        raise ArgumentError(f"alignment is {alignment}, needs to be at least 1")
    sizes, firsts, lasts = np.array(byte_records(records), np.int64).reshape(-1, 3).T
    tasks = np.unique(firsts)
    begins, ends = tasks.searchsorted(firsts), tasks.searchsorted(lasts, "right")
    padding = -sizes % alignment
    changes = np.zeros(len(tasks) + 1, np.int64)
    np.add.at(changes, begins, sizes + padding)
    np.subtract.at(changes, ends, sizes + padding)
    most_padding = np.zeros(len(tasks), np.int64)
    for record in np.argsort(padding, kind="stable"):
        most_padding[begins[record] : ends[record]] = padding[record]
    return tasks, np.cumsum(changes[:-1]) - most_padding
