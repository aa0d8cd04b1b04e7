"""Number and duration of warm-up runs and measured runs, by a clock that tests replace."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace

from delegraph.errors import ArgumentError
from delegraph.json_records import JsonRecord


@dataclass(frozen=True, slots=True)
class Clock:
    """Source of the time for measurements.

    Attributes:
        now: function that returns seconds since an arbitrary moment and never decreases.
        sleep: function that waits for a number of seconds.
    """

    now: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], object] = time.sleep


@dataclass(frozen=True, slots=True)
class RunControl(JsonRecord):
    """Number and duration of runs; the defaults are those of ``benchmark_model``.

    Attributes:
        runs: smallest number of measured runs; 0 together with *min_seconds* 0 means no run.
        min_seconds: shortest duration of all measured runs.
        max_seconds: seconds from the first run on, after which no run begins; the warm-up has the
            same limit.
        warmup_runs: smallest number of warm-up runs, which are not measured.
        warmup_seconds: shortest duration of the warm-up.
        delay: seconds of rest after each run.
        frequency: runs per second on a fixed schedule, used instead of *delay*; late runs catch up.
            None means no schedule.
    """

    runs: int = 50
    min_seconds: float = 1.0
    max_seconds: float = 150.0
    warmup_runs: int = 1
    warmup_seconds: float = 0.5
    delay: float = 0.0
    frequency: float | None = None

    def __post_init__(self) -> None:
        for name in ("runs", "min_seconds", "max_seconds", "warmup_runs", "warmup_seconds"):
            _require(name, getattr(self, name), getattr(self, name) >= 0, ">= 0")
        _require("delay", self.delay, self.delay >= 0, ">= 0 seconds")
        frequency = self.frequency
        _require("frequency", frequency, frequency is None or frequency > 0, "> 0 runs a second")

    @property
    def warm_up(self) -> RunControl:
        """Settings of the warm-up runs, in the form of settings of measured runs."""
        return replace(self, runs=self.warmup_runs, min_seconds=self.warmup_seconds)

    def estimate(self, run: float) -> float:
        """Return the approximate seconds of the warm-up and all runs.

        >>> RunControl().estimate(0.001), RunControl().estimate(1.0)
        (1.5, 51.0)

        Args:
            run: seconds of one run.
        """
        each = run + self.delay if self.frequency is None else max(run, 1 / self.frequency)
        parts = [(self.warmup_runs, self.warmup_seconds), (self.runs, self.min_seconds)]
        return sum(min(max(n * each, least), self.max_seconds + each) for n, least in parts)


def _require(name: str, value: object, holds: bool, expected: str) -> None:
    if not holds:
        raise ArgumentError(f"{name} is {value!r}, expected {expected}")


DRY_RUN = RunControl(runs=0, min_seconds=0, warmup_runs=0, warmup_seconds=0)
"""Settings for no run at all: the model is only loaded and allocated."""


def run_times(
    run: Callable[[], float],
    control: RunControl,
    clock: Clock,
    told: Callable[[float], object] = bool,
) -> array[float]:
    """Run as often or as long as *control* demands, and return the seconds of each run.

    Source:
        ``BenchmarkModel::Run``, tflite/tools/benchmark/benchmark_model.cc.

    Args:
        run: function that runs once and returns the seconds of the run, which may differ from the
            clock's.
        control: number and duration of the runs; its warm-up is ignored.
        clock: clock that measures the duration of all runs together.
        told: function that is called after each run with the finished share, 0 to 1.

    Returns:
        The seconds of each run.
    """
    times = array("d")  # a list of many numbers would show in the measured memory
    least, seconds, frequency = control.runs, control.min_seconds, control.frequency
    begin = now = clock.now()
    while (len(times) < least or now < begin + seconds) and now <= begin + control.max_seconds:
        times.append(run())
        rest = control.delay
        if frequency is not None:
            rest = begin + len(times) / frequency - clock.now()
        if rest > 0:
            clock.sleep(rest)
        now = clock.now()
        told(min(_share(len(times), least), _share(now - begin, seconds)))
    return times


def _share(done: float, all_of_it: float) -> float:
    return min(1.0, done / all_of_it) if all_of_it else 1.0
