"""EQUALITY: a tensor gets a free object whose size equals the tensor's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from delegraph.memory.records import ObjectsAssignment, Size, TensorUsageRecord
from delegraph.memory.strategies.objects_in_use import ObjectsInUse


def last_freed_equal(records: Sequence[TensorUsageRecord]) -> ObjectsAssignment[Size]:
    """Assign each record an object of exactly its size: the last freed of the free objects.

    A new object is created only if no free object has the size. Sizes are bytes, or batch, height,
    width and channels.

    Source:
        EqualityAssignmentWithHash, tflite/delegates/gpu/common/memory_management/
        equality_assignment.h.
    """
    object_ids: list[int] = []
    object_sizes: list[Size] = []
    pool: dict[Size, list[int]] = defaultdict(list)
    in_use = ObjectsInUse()
    for size, first_task, last_task in records:
        for freed in in_use.freed_before(first_task):
            pool[object_sizes[freed]].append(freed)
        if pool[size]:
            object_id = pool[size].pop()
        else:
            object_id = len(object_sizes)
            object_sizes.append(size)
        object_ids.append(object_id)
        in_use.add(object_id, last_task)
    return ObjectsAssignment(object_ids, object_sizes)


def lowest_equal(records: Sequence[TensorUsageRecord]) -> ObjectsAssignment[Size]:
    """Assign each record an object of exactly its size: the free object with the lowest id.

    A new object is created only if no free object has the size. Sizes are those of textures, with
    two or three dimensions.

    Source:
        EqualityAssignment, tflite/delegates/gpu/common/memory_management/equality_assignment.h.
    """
    object_ids: list[int] = []
    object_sizes: list[Size] = []
    last_tasks: list[int] = []
    of_size: dict[Size, list[int]] = defaultdict(list)  # ascending ids
    for size, first_task, last_task in records:
        free = (i for i in of_size[size] if last_tasks[i] < first_task)
        object_id = next(free, len(object_sizes))
        if object_id == len(object_sizes):
            of_size[size].append(object_id)
            object_sizes.append(size)
            last_tasks.append(last_task)
        last_tasks[object_id] = last_task
        object_ids.append(object_id)
    return ObjectsAssignment(object_ids, object_sizes)
