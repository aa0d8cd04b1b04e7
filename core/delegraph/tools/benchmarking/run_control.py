"""Number and duration of warm-up runs and counted runs."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, replace

from delegraph.errors import ArgumentError
from delegraph.json_records import JsonRecord
from delegraph.tools.benchmarking.clock import Clock


@dataclass(frozen=True, slots=True)
class RunControl(JsonRecord):
    """Number and duration of runs; the defaults are those of ``benchmark_model``.

    Attributes:
        runs: at least so many count; 0 with no *min_seconds*: none.
        min_seconds: they go on at least so long.
        max_seconds: no run begins later than this after the first; nor does one of the warm-up.
        warmup_runs: at least so many before, which do not count.
        warmup_seconds: they go on at least so long.
        delay: seconds of rest after each run.
        frequency: runs a second on a fixed schedule, which catches up when late, instead of
            *delay*; None: as fast as it can.
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
        """Run control for the warm-up."""
        return replace(self, runs=self.warmup_runs, min_seconds=self.warmup_seconds)


def _require(name: str, value: object, holds: bool, expected: str) -> None:
    if not holds:
        raise ArgumentError(f"{name} is {value!r}, expected {expected}")


DRY_RUN = RunControl(runs=0, min_seconds=0, warmup_runs=0, warmup_seconds=0)
"""Loads and allocates only."""


def run_times(
    run: Callable[[], float],
    control: RunControl,
    clock: Clock,
    told: Callable[[float], object] = bool,
) -> array[float]:
    """Call *run* until *control*'s least number and least time are reached; return all durations.

    Source:
        ``BenchmarkModel::Run``, tflite/tools/benchmark/benchmark_model.cc.

    Args:
        run: returns the seconds that it took, of which the clock need not know.
        control: whose runs count.
        clock: for the length of all.
        told: gets the share that is done, 0 to 1, after each run.

    Returns:
        The seconds of each run.
    """
    times = array("d")  # a list of so many numbers would show in the memory
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
