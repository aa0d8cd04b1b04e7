"""The packing problem of planners: rectangles in time and memory must not overlap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from delegraph.errors import ArgumentError
from delegraph.memory.records import OffsetsAssignment, TensorUsageRecord, byte_records

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Packing:
    """Sizes and times of use of tensors, for planners; tensors in use at once must not overlap.

    Attributes:
        alignment: number of bytes of a unit.
        sizes: number of bytes of each record, ``[n], int64``.
        units: sizes in units, rounded up, ``[n], int64``.
        tasks: tasks at which a record's use begins, ascending, ``[tasks], int64``.
        begins: index in ``tasks`` of each record's first task, ``[n], int64``.
        ends: index in ``tasks`` after each record's last task, ``[n], int64``.

    Raises:
        ArgumentError: a record is not in bytes or is invalid, or the alignment is below 1.
    """

    def __init__(self, records: Sequence[TensorUsageRecord], alignment: int) -> None:
        if alignment < 1:
            raise ArgumentError(f"alignment is {alignment}, needs to be at least 1")
        self.alignment = alignment
        self.sizes, firsts, lasts = np.array(byte_records(records), np.int64).reshape(-1, 3).T
        self.units = -(-self.sizes // alignment)
        # np.unique would import numpy.ma
        self.tasks = np.array(sorted(set(firsts.tolist())), np.int64)
        self.begins = self.tasks.searchsorted(firsts)
        self.ends = self.tasks.searchsorted(lasts, "right")

    def __len__(self) -> int:
        return len(self.sizes)

    def neighbours(self) -> list[list[int]]:
        """Return, for each tensor, the numbers of the others that are in use at the same time."""
        some = self.units > 0
        return [
            [
                other
                for other in np.flatnonzero(
                    some & some[i] & (self.begins < self.ends[i]) & (self.begins[i] < self.ends)
                ).tolist()
                if other != i
            ]
            for i in range(len(self))
        ]

    def live_bytes(self) -> NDArray[np.int64]:
        """Return the bytes that every plan needs at each of ``tasks``, ``[tasks], int64``.

        This is the sum of the sizes in use with their padding, but without the largest padding: the
        tensor at the end of a buffer needs no padding.
        """
        padded = self.units * self.alignment
        changes = np.zeros(len(self.tasks) + 1, np.int64)
        np.add.at(changes, self.begins, padded)
        np.subtract.at(changes, self.ends, padded)
        live: NDArray[np.int64] = np.cumsum(changes[:-1]) - self._most_padding()
        return live

    def _most_padding(self) -> NDArray[np.int64]:
        """Return the largest padding in use at each of ``tasks``, in bytes, ``[tasks], int64``.

        Each record's tasks are covered by two overlapping spans, whose length is a power of two.
        The maximum of each span is then used for both spans of half the length.
        """
        padding = self.units * self.alignment - self.sizes
        count = len(self.tasks)
        bits = np.frexp(self.ends - self.begins)[1] - 1
        spans = np.zeros((int(bits.max(initial=0)) + 1, count), np.int64)
        np.maximum.at(spans, (bits, self.begins), padding)
        np.maximum.at(spans, (bits, self.ends - (1 << bits)), padding)
        for bit in range(len(spans) - 1, 0, -1):
            half = 1 << (bit - 1)
            np.maximum(spans[bit - 1], spans[bit], out=spans[bit - 1])
            np.maximum(spans[bit - 1][half:], spans[bit][:-half], out=spans[bit - 1][half:])
        most: NDArray[np.int64] = spans[0]
        return most

    def num_conflicts(self) -> int:
        """Number of pairs of records that are in use at the same task."""
        count = len(self)
        begun = np.sort(self.begins).searchsorted(self.ends)
        return int(begun.sum()) - count * (count + 1) // 2

    def groups(self) -> list[list[int]]:
        """Return the records in groups; records of different groups never have a task in common."""
        order = np.argsort(self.begins, kind="stable")
        ends = np.maximum.accumulate(self.ends[order])
        cuts = np.flatnonzero(self.begins[order][1:] >= ends[:-1]) + 1
        return [part.tolist() for part in np.split(order, cuts) if len(part)]

    def plan(self, offsets: Iterable[int]) -> OffsetsAssignment:
        """Return the plan in which records have the given *offsets*, in units."""
        places = [offset * self.alignment for offset in offsets]
        sizes = self.sizes.tolist()
        total = max((o + s for o, s in zip(places, sizes, strict=True)), default=0)
        return OffsetsAssignment(places, total)


def first_fit(
    order: Iterable[int], units: Sequence[int], neighbours: Sequence[Sequence[int]]
) -> list[int]:
    """Return the offsets of records that are placed in *order*, each at its lowest free offset.

    *units* are the sizes of the records. *neighbours* has, for each record, the numbers of those
    that are in use at the same time.

    >>> first_fit([1, 0, 2], units=[1, 3, 2], neighbours=[[1], [0, 2], [1]])
    [3, 0, 3]
    """
    offsets = [-1] * len(units)
    for record in order:
        taken = sorted(
            (offsets[other], offsets[other] + units[other])
            for other in neighbours[record]
            if offsets[other] >= 0
        )
        offset, size = 0, units[record]
        for start, end in taken:
            if offset + size <= start:
                break
            if end > offset:
                offset = end
        offsets[record] = offset
    return offsets
