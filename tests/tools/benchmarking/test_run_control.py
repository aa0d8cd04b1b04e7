from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from delegraph.errors import ArgumentError
from delegraph.tools import RunControl
from delegraph.tools.benchmarking.run_control import DRY_RUN, Clock, run_times


class FakeTime:
    """A clock that goes on only by runs and rests."""

    def __init__(self) -> None:
        self.now = 100.0
        self.rests: list[float] = []
        self.begins: list[float] = []

    def clock(self) -> Clock:
        return Clock(lambda: self.now, self.rest)

    def rest(self, seconds: float) -> None:
        self.rests.append(seconds)
        self.now += seconds

    def run(self, seconds: float) -> float:
        self.begins.append(self.now - 100)
        self.now += seconds
        return seconds

    def times(self, lasting: Iterable[float] | float, **control: Any) -> list[float]:
        """Return the times of runs that last so long each."""
        each = iter(lasting) if isinstance(lasting, Iterable) else iter(lambda: lasting, None)
        return list(run_times(lambda: self.run(next(each)), RunControl(**control), self.clock()))


def test_runs_go_on_for_their_number_and_their_time() -> None:
    assert len(FakeTime().times(0.5, runs=5, min_seconds=1)) == 5
    assert len(FakeTime().times(0.25, runs=2, min_seconds=2)) == 8


def test_no_run_begins_after_the_maximum_but_one_that_runs_ends() -> None:
    assert FakeTime().times([0.5, 0.5, 7, 1], runs=50, max_seconds=1) == [0.5, 0.5, 7]


def test_a_run_begins_at_the_maximum_itself() -> None:
    # as in the official loop: now <= max_finish
    assert len(FakeTime().times(0.5, runs=50, max_seconds=1)) == 3


def test_rests_are_no_part_of_the_times_and_count_for_the_minimum() -> None:
    fake = FakeTime()
    assert fake.times(0.25, runs=1, min_seconds=2, delay=0.75) == [0.25, 0.25]
    assert fake.rests == [0.75, 0.75]


def test_a_frequency_keeps_a_schedule_and_catches_up_when_late() -> None:
    fake = FakeTime()
    lasting = [0.25, 1.25, 0.25, 0.25, 0.25, 0.25]
    fake.times(lasting, runs=6, min_seconds=0, delay=9, frequency=2)
    assert fake.begins == [0, 0.5, 1.75, 2.0, 2.25, 2.5]
    assert fake.rests == [0.25, 0.25]


def test_the_warm_up_has_a_number_and_a_time_of_its_own() -> None:
    control = RunControl(runs=9, min_seconds=8, warmup_runs=3, warmup_seconds=2, delay=1)
    assert control.warm_up == RunControl(3, 2, 150, 3, 2, 1)


def test_a_dry_run_runs_nothing() -> None:
    fake = FakeTime()
    for control in (DRY_RUN, DRY_RUN.warm_up):
        assert len(run_times(lambda: fake.run(1), control, fake.clock())) == 0
    assert fake.begins == []


def test_the_defaults_are_the_official_ones() -> None:
    assert RunControl() == RunControl(50, 1.0, 150.0, 1, 0.5, 0.0, None)


def test_progress_is_the_smaller_share_of_runs_and_time() -> None:
    fake, told = FakeTime(), list[float]()
    control = RunControl(runs=2, min_seconds=2)
    run_times(lambda: fake.run(0.5), control, fake.clock(), told.append)
    assert told == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"runs": -1}, "runs is -1, expected >= 0"),
        ({"warmup_runs": -1}, "warmup_runs is -1, expected >= 0"),
        ({"min_seconds": -1.0}, "min_seconds is -1.0, expected >= 0"),
        ({"max_seconds": -1.0}, "max_seconds is -1.0, expected >= 0"),
        ({"warmup_seconds": -1.0}, "warmup_seconds is -1.0, expected >= 0"),
        ({"delay": -1.0}, "delay is -1.0, expected >= 0 seconds"),
        ({"frequency": 0.0}, "frequency is 0.0, expected > 0 runs a second"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        RunControl(**wrong)
