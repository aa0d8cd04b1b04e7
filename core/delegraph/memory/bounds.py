"""Lower bounds for the memory of every plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from delegraph.memory.packing import Packing
from delegraph.memory.records import TensorUsageRecord

if TYPE_CHECKING:
    from numpy.typing import NDArray


def lower_bound(records: Sequence[TensorUsageRecord], alignment: int = 1) -> int:
    """Return the number of bytes of *records* in use at the busiest task.

    No plan can be smaller. With an alignment, tensors count with their padding. At each task, the
    largest padding is left out, as the tensor at the end of a buffer needs no padding.

    Raises:
        ArgumentError: a record is not in bytes or is invalid, or *alignment* is below 1.

    >>> lower_bound([TensorUsageRecord(100, 0, 1), TensorUsageRecord(80, 1, 2)])
    180
    >>> lower_bound([TensorUsageRecord(100, 0, 1), TensorUsageRecord(80, 1, 2)], alignment=64)
    208
    """
    return int(live_bytes(records, alignment)[1].max(initial=0))


def live_bytes(
    records: Sequence[TensorUsageRecord], alignment: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return tasks, and the number of bytes in use at each task, both ``[n], int64``.

    The tasks are those at which the use of one of *records* begins; at other tasks, no more bytes
    are in use. Sizes are padded to multiples of *alignment*, without the largest padding at each
    task.

    Raises:
        ArgumentError: a record is not in bytes or is invalid, or *alignment* is below 1.
    """
    packing = Packing(records, alignment)
    return packing.tasks, packing.live_bytes()
