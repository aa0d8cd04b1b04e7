from __future__ import annotations

import gc
import math
from collections.abc import Mapping

import numpy as np
import pytest

from delegraph.tools.benchmarking.interleaving import (
    LEAST_RUNS,
    MOST_RUNS,
    TURN_SECONDS,
    Block,
    TimedRun,
    Turns,
    all_times,
    effects_of,
    interleave,
    ratio_of,
    round_order,
)


class Recorded:
    """Runs that write down who ran, and claim to have taken some time."""

    def __init__(self, **seconds: float) -> None:
        self.ran: list[str] = []
        self.runs: dict[str, TimedRun] = {n: self._run(n, s) for n, s in seconds.items()}

    def _run(self, name: str, seconds: float) -> TimedRun:
        def run() -> float:
            self.ran.append(name)
            return seconds

        return run

    def failing(self, name: str, after: int) -> None:
        """Let a run fail from its call number *after* on."""
        run, calls = self.runs[name], iter(range(1_000_000))

        def fails() -> float:
            if next(calls) >= after:
                raise RuntimeError(f"{name} is broken")
            return run()

        self.runs[name] = fails


def timed_block(
    runs: Mapping[str, TimedRun], seconds: float = 0
) -> tuple[dict[str, Block], dict[str, Exception]]:
    turns = Turns(runs)
    turns.warm_up()
    return turns.block(seconds, rng()), turns.failures


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_a_round_goes_there_and_back() -> None:
    for _ in range(20):
        order = round_order(["a", "b", "c"], rng())
        assert sorted(order[:3]) == ["a", "b", "c"]
        assert order[3:] == order[:3][::-1]


def test_rounds_have_all_orders_equally_often() -> None:
    source = rng()
    found = [tuple(round_order(["a", "b", "c"], source)[:3]) for _ in range(600)]
    assert {found.count(order) > 60 for order in set(found)} == {True}
    assert len(set(found)) == 6


def test_the_same_seed_has_the_same_order() -> None:
    first, again = ([round_order(list("abcd"), s) for _ in range(9)] for s in (rng(), rng()))
    assert first == again


def test_slow_runs_run_once_in_a_turn_after_one_that_does_not_count() -> None:
    made = Recorded(a=1.0, b=2.0)
    times, _ = timed_block(made.runs)
    assert times == {"a": [([1.0], [1.0])], "b": [([2.0], [2.0])]}
    assert made.ran[:4] == ["a", "a", "b", "b"]
    assert made.ran[4:] in (list("aabbbbaa"), list("bbaaaabb"))


@pytest.mark.parametrize(
    ("seconds", "count"),
    [(1e-6, MOST_RUNS), (TURN_SECONDS / 10, 10), (TURN_SECONDS, LEAST_RUNS), (0.019, LEAST_RUNS)],
)
def test_quick_runs_run_several_times_and_some_do_not_count(seconds: float, count: int) -> None:
    made = Recorded(a=seconds)
    times, _ = timed_block(made.runs)
    ((first, second),) = times["a"]
    assert len(first) == len(second) == count
    assert len(made.ran) == 5 + 2 * (math.ceil(count / 10) + count)


@pytest.mark.parametrize("disturbed", [0.03, 0.1])
def test_a_quick_run_is_not_taken_for_slow_because_it_was_disturbed(disturbed: float) -> None:
    seconds = iter([disturbed] * 4)
    times, _ = timed_block({"a": lambda: next(seconds, 1e-4)})
    assert len(times["a"][0][0]) == MOST_RUNS


def test_rounds_go_on_until_the_time_is_over() -> None:
    made = Recorded(a=1.0, b=1.0)
    times, _ = timed_block(made.runs, 1.0)
    assert len(times["a"]) == len(times["b"]) > 1


@pytest.mark.parametrize("after", range(6))
def test_who_fails_is_listed_with_its_error_and_the_others_go_on(after: int) -> None:
    made = Recorded(a=1.0, b=1.0, c=1.0)
    made.failing("b", after)
    times, failures = timed_block(made.runs, 0.1)
    assert list(times) == ["a", "c"]
    assert len(times["a"]) == len(times["c"]) >= 1
    assert [(name, str(error)) for name, error in failures.items()] == [("b", "b is broken")]


def test_a_block_ends_when_nobody_is_left() -> None:
    made = Recorded(a=1.0)
    made.failing("a", 2)
    times, failures = timed_block(made.runs, 60)
    assert times == {}
    assert list(failures) == ["a"]


def test_what_ends_the_process_is_not_listed() -> None:
    def interrupted() -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        timed_block({"a": interrupted}, 1)
    assert gc.isenabled()


def test_no_garbage_is_collected_in_a_turn() -> None:
    seen = list[bool]()

    def run() -> float:
        seen.append(gc.isenabled())
        return 1.0

    timed_block({"a": run})
    assert seen == [True] * 2 + [False] * 4
    assert gc.isenabled()


def test_functions_take_turns_in_as_many_blocks() -> None:
    ran = list[str]()
    runs = {"a": lambda: ran.append("a"), "b": lambda: ran.append("b")}
    times = interleave(runs, 0, blocks=3)
    assert {name: [len(block) for block in blocks] for name, blocks in times.items()} == {
        "a": [1, 1, 1],
        "b": [1, 1, 1],
    }
    assert all(second > 0 for second in all_times(times["a"]))
    assert {"a", "b"} == set(ran)


def test_the_error_of_a_function_is_raised() -> None:
    def fails() -> None:
        raise ValueError("no such tensor")

    with pytest.raises(ValueError, match="no such tensor"):
        interleave({"a": list, "b": fails}, 0.01)


def test_progress_tells_the_share_of_all_blocks() -> None:
    told = list[tuple[str, float, float | None]]()
    interleave({"a": list}, 0.02, blocks=2, progress=lambda *now: told.append(now))
    assert {total for *_, total in told} == {2}
    done = [done for _, done, _ in told]
    assert done == sorted(done)
    assert done[-1] == 2.0
    assert told[0][0] == "block 1 of 2"
    assert told[-1][0] == "block 2 of 2"


def test_the_quickest_run_stands_for_a_turn() -> None:
    one = [[([1.0, 7.0], [9.0, 1.0])]]
    other = [[([3.0, 5.0], [2.0, 4.5])]]
    assert effects_of(other, one) == pytest.approx((np.log(3) + np.log(2)) / 2)
    assert effects_of(other, one, np.max) == pytest.approx((np.log(5 / 7) + np.log(4.5 / 9)) / 2)


def test_as_many_runs_count_of_either_turn() -> None:
    # with a quick one only among the runs that the other has not
    one = [[([2.0, 2.0, 1.0], [2.0, 2.0, 1.0])]]
    other = [[([2.0, 2.0], [2.0, 2.0])]]
    assert effects_of(one, other) == pytest.approx(0.0)
    assert effects_of(other, one) == pytest.approx(0.0)


def test_all_times_are_in_order() -> None:
    blocks = [[([1.0, 2.0], [3.0])], [([4.0], [5.0]), ([6.0], [7.0])]]
    assert all_times(blocks).tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_ratios_are_of_turns_side_by_side() -> None:
    # the machine halves its speed from block to block; the one takes thrice as long throughout
    slower = [[([2.0**i], [2.0**i])] for i in range(6)]
    thrice = [[([3 * 2.0**i, 99.0], [3 * 2.0**i, 99.0])] for i in range(6)]
    assert str(ratio_of(thrice, slower)) == "3.000 [3.000-3.000]"
