"""Queue of the objects in use, ordered by the task at which they become free."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush


class ObjectsInUse:
    """Queue of objects, ordered by the task after which they are free, then by id.

    >>> queue = ObjectsInUse()
    >>> queue.add(object_id=0, last_task=4)
    >>> queue.add(object_id=1, last_task=2)
    >>> list(queue.freed_before(4)), list(queue.freed_before(5))
    ([1], [0])
    """

    def __init__(self) -> None:
        self._queue: list[tuple[int, int]] = []

    def add(self, object_id: int, last_task: int) -> None:
        """Add object *object_id*, which is in use up to task *last_task*."""
        heappush(self._queue, (last_task, object_id))

    def freed_before(self, task: int) -> Iterator[int]:
        """Remove and yield the ids of the objects whose last use is before *task*."""
        while self._queue and self._queue[0][0] < task:
            yield heappop(self._queue)[1]
