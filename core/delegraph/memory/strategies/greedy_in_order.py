"""GREEDY_IN_ORDER: a tensor gets the free object of the closest size."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from math import prod

from delegraph.memory.records import ByteRecord, ObjectsAssignment, ShapeRecord
from delegraph.memory.strategies.objects_in_use import ObjectsInUse

_Pool = list[tuple[int, int]]  # (size, object id), ascending


def greedy_in_order(
    records: Sequence[ByteRecord], reallocation_graph: Sequence[Sequence[int]] | None = None
) -> ObjectsAssignment[int]:
    """Assign tensors to objects; an object grows if a larger tensor gets it.

    Without a graph, a new object is created only if no object is free.

    Args:
        records: sizes in bytes.
        reallocation_graph: for each tensor, the tensors that may use its memory later, ascending.
            Tasks may then run in another order or at the same time.

    Source:
        GreedyInOrderAssignment, tflite/delegates/gpu/common/memory_management/
        greedy_in_order_assignment.h.
    """
    object_ids: list[int] = []
    object_sizes: list[int] = []
    last_tensors: list[int] = []
    pool: _Pool = []
    in_use = ObjectsInUse()
    for tensor, (size, first_task, last_task) in enumerate(records):
        for freed in in_use.freed_before(first_task):
            insort(pool, (object_sizes[freed], freed))
        if reallocation_graph is None:
            place = _closest(pool, size)
        else:
            place = _closest_permitted(pool, size, tensor, last_tensors, reallocation_graph)
        if place is None:
            object_id = len(object_sizes)
            object_sizes.append(size)
            last_tensors.append(tensor)
        else:
            object_id = pool.pop(place)[1]
            object_sizes[object_id] = max(object_sizes[object_id], size)
            last_tensors[object_id] = tensor
        object_ids.append(object_id)
        in_use.add(object_id, last_task)
    return ObjectsAssignment(object_ids, object_sizes)


def _closest(pool: _Pool, size: int) -> int | None:
    """Return the index in *pool* of the object whose size is closest to *size*; None if empty.

    *pool* is sorted by size. If a smaller and a larger object are equally close, the larger object
    is selected.
    """
    larger = bisect_left(pool, (size, 0))
    smaller = larger - 1
    if larger == len(pool):
        return smaller if pool else None
    if smaller >= 0 and size - pool[smaller][0] < pool[larger][0] - size:
        return smaller
    return larger


def _closest_permitted(
    pool: _Pool,
    size: int,
    tensor: int,
    last_tensors: Sequence[int],
    reallocation_graph: Sequence[Sequence[int]],
) -> int | None:
    permitted = (
        place
        for place, (_, object_id) in enumerate(pool)
        if tensor in reallocation_graph[last_tensors[object_id]]
    )
    return min(permitted, key=lambda place: abs(pool[place][0] - size), default=None)


def greedy_in_order_by_dimensions(
    records: Sequence[ShapeRecord],
) -> ObjectsAssignment[tuple[int, ...]]:
    """Assign tensors to objects that are large enough in every dimension; no object grows.

    A tensor gets the free object that is large enough and has the fewest surplus elements; of equal
    objects, the object freed first.

    Source:
        GreedyInOrderAssignmentMultidimensional, tflite/delegates/gpu/common/memory_management/
        greedy_in_order_assignment.h.
    """
    object_ids: list[int] = []
    object_sizes: list[tuple[int, ...]] = []
    pool: list[int] = []
    in_use = ObjectsInUse()
    for size, first_task, last_task in records:
        pool.extend(in_use.freed_before(first_task))
        covering = [i for i in pool if _covers(object_sizes[i], size)]
        if covering:
            object_id = min(covering, key=lambda i: prod(object_sizes[i]))
            pool.remove(object_id)
        else:
            object_id = len(object_sizes)
            object_sizes.append(size)
        object_ids.append(object_id)
        in_use.add(object_id, last_task)
    return ObjectsAssignment(object_ids, object_sizes)


def _covers(larger: tuple[int, ...], smaller: tuple[int, ...]) -> bool:
    return all(a >= b for a, b in zip(larger, smaller, strict=True))
