from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from delegraph.runtime.execution.schedule import Schedule, StateUse, Task, scheduled


def task(reads: str, writes: str, state: StateUse = StateUse.NONE) -> Task:
    """Return a task of tensors with names of one letter; the first is ``>`` if asynchronous."""
    is_asynchronous = reads.startswith(">")
    return Task(
        [ord(name) for name in reads.lstrip(">")], [ord(name) for name in writes],
        is_asynchronous, state,
    )  # fmt: skip


def order(*tasks: Task, edges: list[tuple[int, int]] | None = None) -> str:
    """Return the order by position in the plan; ``(0)`` waits for the task at 0."""
    found = scheduled(tasks, edges or [])
    if found is None:
        return "as it is"
    words = []
    for i in range(len(found.order) + 1):
        words += [f"({found.order[start]})" for start in found.waits.get(i, ())]
        words += [str(position) for position in found.order[i : i + 1]]
    return " ".join(words)


def test_a_plan_without_asynchronous_nodes_stays_as_it_is() -> None:
    assert order(task("x", "a"), task("a", "b")) == "as it is"


def test_where_nothing_can_run_meanwhile_nothing_is_started() -> None:
    assert order(task(">x", "a"), task(">a", "b"), task("b", "c")) == "as it is"


def test_it_is_waited_for_before_the_first_reader_of_its_output() -> None:
    assert order(task(">x", "a"), task("x", "b"), task("ab", "c")) == "0 1 (0) 2"


def test_it_is_waited_for_at_the_end_where_nobody_reads_it() -> None:
    assert order(task(">x", "a"), task("x", "b"), task("b", "c")) == "0 1 2 (0)"


def test_asynchronous_nodes_start_before_others_run() -> None:
    assert order(task("x", "a"), task(">x", "b"), task("ab", "c")) == "1 0 (1) 2"


def test_what_a_started_node_needs_does_not_wait_for_one_in_the_way() -> None:
    plan = task(">x", "a"), task("a", "b"), task("x", "c"), task(">c", "d"), task("bd", "e")
    assert order(*plan) == "0 2 3 (0) 1 (3) 4"


def test_the_last_one_started_before_a_wait_need_not_be_started() -> None:
    assert order(task(">x", "a"), task(">x", "b"), task("ab", "c")) == "0 1 (0) 2"


def test_what_writes_its_input_waits() -> None:
    assert order(task(">x", "a"), task("y", "b"), task("y", "x")) == "0 1 (0) 2"


def test_what_writes_its_output_waits() -> None:
    assert order(task(">x", "a"), task("y", "b"), task("y", "a")) == "0 1 (0) 2"


def test_a_variable_is_changed_by_whoever_has_it() -> None:
    assert order(task(">v", "av"), task("y", "b"), task("v", "cv")) == "0 1 (0) 2"


@pytest.mark.parametrize(
    ("first", "second", "waits"),
    [
        (StateUse.CERTAIN, StateUse.CERTAIN, True),
        (StateUse.MAYBE, StateUse.CERTAIN, True),
        (StateUse.CERTAIN, StateUse.MAYBE, True),
        (StateUse.MAYBE, StateUse.MAYBE, False),
        (StateUse.CERTAIN, StateUse.NONE, False),
    ],
)
def test_state_that_no_tensor_shows_is_used_in_order(
    first: StateUse, second: StateUse, waits: bool
) -> None:
    plan = task(">x", "a", first), task("x", "b"), task("x", "c", second)
    assert order(*plan) == ("0 1 (0) 2" if waits else "0 1 2 (0)")


def test_a_control_edge_is_waited_for() -> None:
    plan = task(">x", "a"), task("x", "b"), task("x", "c")
    assert order(*plan) == "0 1 2 (0)"
    assert order(*plan, edges=[(0, 2)]) == "0 1 (0) 2"


def test_a_schedule_tells_what_runs_meanwhile() -> None:
    assert Schedule((0, 1, 2, 3), {2: (0,), 4: (1,)}).overlaps() == {0: range(1, 2), 1: range(2, 4)}


def needs(tasks: list[Task], earlier: int, later: int) -> bool:
    """Whether two tasks touch a tensor that one of them writes."""
    one, other = tasks[earlier], tasks[later]
    return bool({*one.writes} & {*other.reads, *other.writes} or {*one.reads} & {*other.writes})


@pytest.mark.parametrize("seed", range(40))
def test_whatever_the_graph_nothing_runs_before_what_it_needs_is_done(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tasks = []
    for made in range(20):
        reads = rng.integers(0, made + 1, rng.integers(1, 4)).tolist()
        written = made + 1 if rng.random() < 0.9 else int(rng.integers(0, made + 1))
        tasks.append(Task(reads, [written], bool(rng.random() < 0.5)))
    found = scheduled(tasks)
    if found is None:
        return
    assert sorted(found.order) == list(range(20))
    overlaps = found.overlaps()
    assert all(tasks[found.order[start]].is_asynchronous for start in overlaps)
    for later, position in enumerate(found.order):
        for earlier, before in enumerate(found.order[:later]):
            if before < position and needs(tasks, before, position):
                assert later not in overlaps.get(earlier, ())
    place = {position: i for i, position in enumerate(found.order)}
    for position in range(20):
        for before in range(position):
            if needs(tasks, before, position):
                assert place[before] < place[position]


def test_a_schedule_is_the_same_for_tasks_that_are_the_same() -> None:
    tasks = [task(">x", "a"), task(">x", "b"), task("x", "c"), task("abc", "d")]
    assert scheduled(tasks) == scheduled([replace(each) for each in tasks])
