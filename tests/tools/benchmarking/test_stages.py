from __future__ import annotations

from collections.abc import Sequence

from delegraph.tools.benchmarking.memory import Memory
from delegraph.tools.benchmarking.run_control import Clock
from delegraph.tools.benchmarking.stages import Stage, Stages


def stages_of(times: Sequence[float], memories: Sequence[Memory], *, resets: bool) -> Stages:
    """Return stages whose clock and memory tell these, one after the other."""
    clock, memory = iter(times), iter(memories)
    return Stages(Clock(lambda: next(clock)), lambda: next(memory), lambda: resets)


def each(*pairs: tuple[int | None, int | None]) -> list[Memory]:
    return [Memory(current, peak) for current, peak in pairs]


def test_a_stage_has_the_time_since_the_one_before() -> None:
    memories = each((10, 15), (20, 30), (25, 25))
    stages = stages_of([0, 2, 7, 8, 9], memories, resets=True)
    stages.end("load")
    stages.end("allocate")
    assert stages.before == Memory(10, 15)
    assert stages.done == [Stage("load", 2, 20, 30), Stage("allocate", 1, 25, 25)]


def test_reading_the_memory_is_no_part_of_a_stage() -> None:
    now = [0.0]

    def slow() -> Memory:
        now[0] += 100
        return Memory(1, 1)

    stages = Stages(Clock(lambda: now[0]), slow, lambda: True)
    for name in ("load", "allocate"):
        now[0] += 1
        stages.end(name)
    assert [stage.seconds for stage in stages.done] == [1, 1]


def test_what_is_skipped_is_no_part_of_a_stage() -> None:
    stages = stages_of([0, 5, 6, 7], each((1, 1), (1, 1)), resets=True)
    stages.skip()
    stages.end("allocate")
    assert stages.done[0].seconds == 1


def test_a_peak_that_cannot_be_reset_counts_only_where_it_is_a_new_one() -> None:
    memories = each((10, 50), (20, 50), (60, 70), (65, 70))
    stages = stages_of(range(9), memories, resets=False)
    for name in ("a", "b", "c"):
        stages.end(name)
    assert [stage.peak for stage in stages.done] == [None, 70, None]


def test_a_system_that_tells_nothing_gives_none() -> None:
    stages = stages_of(range(9), each((None, None), (None, None)), resets=False)
    stages.end("load")
    assert stages.done == [Stage("load", 1, None, None)]


def test_json_has_all_of_a_stage() -> None:
    assert Stage("load", 1.5, 2, None).to_json() == {
        "name": "load",
        "seconds": 1.5,
        "memory": 2,
        "peak": None,
    }
