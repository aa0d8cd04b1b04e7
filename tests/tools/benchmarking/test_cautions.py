from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from delegraph.tools import RunControl
from delegraph.tools.benchmarking.cautions import cautions
from delegraph.tools.benchmarking.machine import Machine, machine

QUIET = replace(machine(), load=(0.1, 0.1, 0.1), governors=())

STEADY = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.01, 0.99, 1.0]
"""A deviation of 1.1 % of the mean; the median deviation from the median is 0.01."""


ONE = RunControl(runs=1)


def said(runs: Sequence[float], where: Machine = QUIET) -> list[str]:
    return [text.split(":")[0] for text in cautions(runs, ONE, where)]


def test_steady_times_on_a_quiet_machine_need_no_caution() -> None:
    assert said(STEADY) == []
    assert said([]) == []


def test_a_deviation_of_more_than_2_5_percent_is_unstable() -> None:
    assert said([0.976, 1.024] * 5) == []
    assert list(cautions([0.974, 1.026] * 5, ONE, QUIET)) == [
        "unstable: the standard deviation is 2.6 % of the mean, more than 2.5 %; prefer the "
        "median, and a machine without other work"
    ]


@pytest.mark.parametrize(("first", "is_one"), [(1.149, True), (1.148, False), (0.851, True)])
def test_a_first_run_that_is_far_off_calls_for_more_warm_up(first: float, is_one: bool) -> None:
    runs = [first, *STEADY[1:]]  # 14.826 * 0.01 from the median of 1 is an outlier
    assert ("the first run is an outlier" in said(runs)) is is_one


def test_a_later_outlier_says_nothing_of_the_warm_up() -> None:
    assert "the first run is an outlier" not in said([*STEADY[1:], 3.0])


def test_fewer_than_10_runs_are_few() -> None:
    assert said(STEADY[:9]) == ["9 of at least 10 runs"]


def test_very_short_runs_are_told() -> None:
    short = [9e-5 * time for time in STEADY]
    assert said(short) == ["a run takes 90 us"]
    assert said([1.1e-4 * time for time in STEADY]) == []


def test_other_work_and_changing_clock_rates_are_told() -> None:
    cores = QUIET.processor.usable_cores
    assert said(STEADY, replace(QUIET, load=(cores + 0.5, 0, 0))) == ["busy machine"]
    assert said(STEADY, replace(QUIET, load=None)) == []
    assert said(STEADY, replace(QUIET, governors=("performance",))) == []
    changing = replace(QUIET, governors=("performance", "powersave"))
    assert list(cautions(STEADY, ONE, changing)) == [
        "the clock rate may change: governor performance, powersave"
    ]


def test_a_maximum_that_cuts_runs_off_is_told() -> None:
    control = RunControl(runs=11, max_seconds=7)
    (text,) = cautions(STEADY, control, QUIET)
    assert text == "the maximum of 7 s was over after 10 of 11 runs"


def test_a_busy_machine_is_told_with_what_was_seen() -> None:
    cores = QUIET.processor.usable_cores
    (text,) = cautions(STEADY, ONE, QUIET, others=cores * 0.6)
    assert text == (
        f"busy machine: other processes used {cores * 0.6:.1f} of {cores} cores meanwhile, the "
        "load was 0.1 before; 90 % of the runs took 984 ms to 1.016 s"
    )
    assert list(cautions(STEADY, ONE, replace(QUIET, load=(99.0, 0, 0)), others=0.0)) == []
