"""GREEDY_BY_SIZE: large tensors come first; results are objects or offsets."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from delegraph.memory.best_fit import BestFit, align
from delegraph.memory.records import ByteRecord, ObjectsAssignment, OffsetsAssignment
from delegraph.memory.task_profiles import positional_maximums

_NEVER = np.iinfo(np.int64).max - 1
_ASSIGNED = np.iinfo(np.int64).max  # marks an assigned tensor, which is skipped


def greedy_by_size(records: Sequence[ByteRecord], alignment: int) -> OffsetsAssignment:
    """Return offsets: each tensor gets the smallest gap that is large enough, the lowest first.

    Args:
        records: sizes in bytes.
        alignment: number of bytes of which every offset is a multiple. The total size is not
            rounded up.

    Source:
        GreedyBySizeAssignment, tflite/delegates/gpu/common/memory_management/
        greedy_by_size_assignment.cc.
    """
    offsets = [0] * len(records)
    total_size = 0
    best_fit = BestFit(1)  # blocks include padding, so gaps start at their ends
    for tensor in sorted(range(len(records)), key=lambda i: -records[i][0]):
        size, first_task, last_task = records[tensor]
        offset = best_fit.best_offset(size, first_task, last_task)
        best_fit.add(first_task, last_task, offset, align(size, alignment))
        offsets[tensor] = offset
        total_size = max(total_size, offset + size)
    return OffsetsAssignment(offsets, total_size)


def size_distance_priority(records: Sequence[ByteRecord]) -> ObjectsAssignment[int]:
    """Assign each tensor to the object whose uses are closest to the tensor's uses in time.

    The k-th positional maximum is the largest size of a tensor that is the k-th largest at some
    task. A tensor belongs to the smallest of these maxima that is at least as large as the tensor.
    Tensors of the largest maximum are assigned first. Tensors of one maximum are sorted by the
    distance in time to their object, which changes as objects are assigned, then by size.

    Source:
        GreedyBySizeDistPriorityAssignment, tflite/delegates/gpu/common/memory_management/
        greedy_by_size_assignment.cc.
    """
    object_ids = [0] * len(records)
    object_sizes: list[int] = []
    queue = _Queue(records)
    for _ in records:
        tensor, object_id = queue.pop()
        size = records[tensor][0]
        if object_id == len(object_sizes):
            object_sizes.append(size)
        object_ids[tensor] = object_id
        object_sizes[object_id] = max(object_sizes[object_id], size)
    return ObjectsAssignment(object_ids, object_sizes)


class _Queue:
    """Tensors that wait for a memory object, in the order in which they get an object.

    Attributes:
        _order: tensors sorted by position, size (descending) and index, ``[tensors], int64``; the
            arrays below have the same order.
        _distances: number of tasks to the closest use of the object in ``_objects``, ``[tensors],
            int64``.
        _objects: the object that the tensor gets when it is the next, ``[tensors], int64``.
    """

    def __init__(self, records: Sequence[ByteRecord]) -> None:
        sizes, firsts, lasts = np.array(records, np.int64).reshape(-1, 3).T
        positions = _positions(records, sizes)
        self._order = np.lexsort((np.arange(len(records)), -sizes, positions))
        self._firsts, self._lasts = firsts[self._order], lasts[self._order]
        self._distances = np.full(len(records), _NEVER)
        self._objects = np.full(len(records), -1)
        self._schedules: list[list[tuple[int, int]]] = []
        # End of the tensors of each position; tensors of one position compete.
        self._stops = np.searchsorted(positions[self._order], np.unique(positions), "right")
        self._start = self._group = self._taken = 0

    def pop(self) -> tuple[int, int]:
        """Return the next tensor and its object; an unused object id means a new object."""
        if self._taken == self._stops[self._group]:
            self._start, self._group = self._taken, self._group + 1
        self._taken += 1
        place = self._start + int(self._distances[self._start : self._stops[self._group]].argmin())
        if self._distances[place] == _NEVER:
            object_id = len(self._schedules)
            self._schedules.append([])
        else:
            object_id = int(self._objects[place])
        self._distances[place] = _ASSIGNED
        self._assign(place, object_id)
        return int(self._order[place]), object_id

    def _assign(self, place: int, object_id: int) -> None:
        """Record that the tensor at *place* of ``_order`` gets *object_id*; update distances."""
        first_task, last_task = int(self._firsts[place]), int(self._lasts[place])
        schedule = self._schedules[object_id]
        was_free = self._free(schedule)
        insort(schedule, (first_task, last_task))
        distances = _gaps(self._firsts, self._lasts, first_task, last_task)
        waiting = was_free & (self._distances != _ASSIGNED)
        for lost in np.flatnonzero(waiting & (distances == _NEVER) & (self._objects == object_id)):
            self._choose_anew(int(lost))
        closer = waiting & (distances < self._distances)
        self._distances[closer] = distances[closer]
        self._objects[closer] = object_id

    def _free(self, schedule: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
        """Return a mask, ``[tensors], bool``, of the tensors in use at no task of *schedule*."""
        firsts, lasts = np.array(schedule, np.int64).reshape(-1, 2).T
        begun = firsts.searchsorted(self._lasts, "right")
        ended = lasts.searchsorted(self._firsts, "left")
        free: NDArray[np.bool_] = begun == ended
        return free

    def _choose_anew(self, place: int) -> None:
        """Choose among all objects for the tensor at *place* of ``_order``: the closest in time.

        Of equally close objects, the lowest id is chosen.
        """
        first_task, last_task = int(self._firsts[place]), int(self._lasts[place])
        self._distances[place] = _NEVER
        for object_id, schedule in enumerate(self._schedules):
            distance = _distance(schedule, first_task, last_task)
            if distance < self._distances[place]:
                self._distances[place] = distance
                self._objects[place] = object_id


def _positions(records: Sequence[ByteRecord], sizes: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return, for each tensor, the index of its positional maximum; 0 is that of the largest.

    The k-th positional maximum is the size of the k-th largest tensor in use at a task, at the task
    where it is greatest. The index is the last k for which it is at least as large as the tensor.

    Args:
        records: sizes and uses of the tensors.
        sizes: sizes of the same tensors.
    """
    return np.searchsorted(-positional_maximums(records), -sizes, "right") - 1


def _gaps(
    firsts: NDArray[np.int64], lasts: NDArray[np.int64], first_task: int, last_task: int
) -> NDArray[np.int64]:
    """Number of tasks between each tensor's use and the use from *first_task* to *last_task*.

    *firsts* and *lasts* are the tensors' first and last tasks; the result is _NEVER if uses
    intersect.
    """
    gaps = np.maximum(firsts - last_task, first_task - lasts)
    gaps[gaps <= 0] = _NEVER
    return gaps


def _distance(schedule: Sequence[tuple[int, int]], first_task: int, last_task: int) -> int:
    """Number of tasks from a use, *first_task* to *last_task*, to the closest use in *schedule*.

    The result is _NEVER if a use overlaps.
    """
    place = bisect_left(schedule, (last_task + 1,))
    after = schedule[place][0] - last_task if place < len(schedule) else _NEVER
    before = first_task - schedule[place - 1][1] if place else _NEVER
    return min(before, after) if before > 0 else _NEVER
