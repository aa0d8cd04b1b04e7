"""Order in which nodes run if some are asynchronous, and the points at which these are awaited.

Asynchronous nodes start as soon as their inputs are ready, and no node waits while another node can
run. With A and B asynchronous, and C reading what both write::

    plan      A  C' B  C          C' reads what A writes
    order     A  B  (wait for A)  C'  (wait for B)  C

The dependencies are known before any node runs, so the schedule is made once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from heapq import heappop, heappush

from delegraph.delegation.partitioner import ControlEdge
from delegraph.lazy_dataclass import dataclass


class StateUse(IntEnum):
    """Whether a node uses state that is not in the tensors of the plan.

    Attributes:
        NONE: it uses none.
        MAYBE: a delegate computes a custom operator, which may keep state.
        CERTAIN: it reads or changes resources, or calls another subgraph.
    """

    NONE = 0
    MAYBE = 1
    CERTAIN = 2


@dataclass(frozen=True, slots=True)
class Task:
    """Tensors and state of a node that a schedule needs to know.

    Attributes:
        reads: tensors, by index.
        writes: tensors, by index, including variables that the node may change.
        is_asynchronous: whether the node can be started and awaited later.
        state: the node's use of state outside of tensors.
    """

    reads: Sequence[int]
    writes: Sequence[int]
    is_asynchronous: bool = False
    state: StateUse = StateUse.NONE


@dataclass(frozen=True, slots=True)
class Schedule:
    """An order of nodes, with the waits between them.

    Attributes:
        order: positions in the plan, in the order in which the nodes run or start.
        waits: mapping from a position in ``order`` to the positions in ``order`` of the nodes that
            are awaited before it; the length of ``order`` stands for the end. All other nodes run
            synchronously.
    """

    order: tuple[int, ...]
    waits: Mapping[int, tuple[int, ...]]

    def overlaps(self) -> dict[int, range]:
        """Return, for each asynchronous node, the positions of nodes that run before it is awaited.

        All positions are indices of ``order``.
        """
        return {start: range(start + 1, end) for end, all_ in self.waits.items() for start in all_}


def scheduled(tasks: Sequence[Task], edges: Iterable[ControlEdge] = ()) -> Schedule | None:
    """Return a schedule for *tasks*; None if no tasks can run at the same time.

    The time is O((tasks + dependencies) log tasks).

    Args:
        tasks: in the order of the plan.
        edges: pairs of positions, (before, after), in addition to the dependencies by tensors and
            state.

    >>> a, b = Task([0], [1], True), Task([0], [3], True)
    >>> scheduled([a, Task([1], [2]), b, Task([2, 3], [4])])
    Schedule(order=(0, 2, 1, 3), waits={2: (0,), 3: (1,)})
    >>> scheduled([a, Task([1], [2])]) is None
    True
    """
    if not any(task.is_asynchronous for task in tasks):
        return None
    found = _Scheduler(tasks, _dependencies(tasks, edges)).run()
    return found if found.waits else None


def _dependencies(tasks: Sequence[Task], edges: Iterable[ControlEdge]) -> list[set[int]]:
    """Return, for each task, the positions of earlier tasks that must be done before it.

    *edges* are pairs of positions whose order the model demands.
    """
    found: list[set[int]] = [set() for _ in tasks]
    written = {tensor for task in tasks for tensor in task.writes}
    writer: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    for position, task in enumerate(tasks):
        for tensor in written.intersection(task.reads):
            if tensor in writer:
                found[position].add(writer[tensor])
            readers.setdefault(tensor, []).append(position)
        for tensor in task.writes:
            found[position].update(readers.pop(tensor, ()))
            if tensor in writer:
                found[position].add(writer[tensor])
            writer[tensor] = position
        found[position].discard(position)
    _add_state(found, tasks)
    for before, after in edges:
        if before < after:
            found[after].add(before)
    return found


def _add_state(found: list[set[int]], tasks: Sequence[Task]) -> None:
    """Add to *found* the dependencies between tasks with state, which must keep their order.

    *found* has, for each task, the positions of tasks that must be done before it.
    """
    last: int | None = None
    maybe: list[int] = []
    for position, task in enumerate(tasks):
        if task.state is StateUse.NONE:
            continue
        if last is not None:
            found[position].add(last)
        if task.state is StateUse.MAYBE:
            maybe.append(position)
        else:
            found[position].update(maybe)
            last, maybe = position, []


class _Scheduler:
    """Schedules tasks; holds the sets of done, started and ready tasks."""

    def __init__(self, tasks: Sequence[Task], dependencies: Sequence[set[int]]) -> None:
        self._tasks = tasks
        self._needs = dependencies
        self._needed_by: list[list[int]] = [[] for _ in tasks]
        for position, needs in enumerate(dependencies):
            for earlier in needs:
                self._needed_by[earlier].append(position)
        self._unfinished = [len(needs) for needs in dependencies]
        self._unstarted = list(self._unfinished)
        # A heap: asynchronous tasks first, then in plan order.
        self._ready: list[tuple[bool, int]] = []
        self._waiting: list[int] = []  # a heap of tasks that need only started tasks
        self._in_flight: dict[int, int] = {}  # task to its position in the order
        self._order: list[int] = []
        self._waits: dict[int, tuple[int, ...]] = {}

    def run(self) -> Schedule:
        """Build and return the schedule of all tasks."""
        for position, count in enumerate(self._unfinished):
            if not count:
                self._make_ready(position)
        while len(self._order) < len(self._tasks):
            if self._ready:
                self._take(heappop(self._ready)[1])
            else:
                self._wait_for_what(heappop(self._waiting))
        self._wait(self._in_flight)
        return Schedule(tuple(self._order), self._waits)

    def _make_ready(self, task: int) -> None:
        heappush(self._ready, (not self._tasks[task].is_asynchronous, task))

    def _take(self, task: int) -> None:
        self._order.append(task)
        for later in self._needed_by[task]:
            self._unstarted[later] -= 1
        if self._tasks[task].is_asynchronous:
            self._in_flight[task] = len(self._order) - 1
            for later in self._needed_by[task]:
                if not self._unstarted[later]:
                    heappush(self._waiting, later)
        else:
            self._finish(task)

    def _finish(self, task: int) -> None:
        for later in self._needed_by[task]:
            self._unfinished[later] -= 1
            if not self._unfinished[later]:
                self._make_ready(later)
            elif not self._unstarted[later]:
                heappush(self._waiting, later)

    def _wait_for_what(self, task: int) -> None:
        """Add waits for the running tasks that *task* depends on."""
        self._wait([need for need in self._needs[task] if need in self._in_flight])

    def _wait(self, tasks: Iterable[int]) -> None:
        here, last = len(self._order), len(self._order) - 1
        for task in sorted(tasks, key=self._in_flight.__getitem__):
            start = self._in_flight.pop(task)
            if start < last:  # otherwise nothing has run since
                self._waits[here] = (*self._waits.get(here, ()), start)
            self._finish(task)
