"""Times runtimes in turn, and says how sure the ratios of their times are."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from runtimes import Run

PAUSE = 0.003
"""Seconds before each turn, in which the pools of the others go to sleep."""

BURST_SECONDS = 0.02
LONGEST_BURST = 10

Rounds = list[list[float]]
"""Seconds of each run, by turn."""

STATISTICS: Mapping[str, Callable[[NDArray[np.float64]], float]] = {
    "minimum": lambda times: float(times.min()),
    "10th percentile": lambda times: float(np.percentile(times, 10)),
    "median": lambda times: float(np.median(times)),
}


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of times, with the interval that holds 95 % of what resampling gives."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}-{self.high:.2f}]"


def sample(runs: Mapping[str, Run], seconds: float) -> dict[str, Rounds]:
    """Return the times of all runs, which take turns for about *seconds*.

    A turn is a pause, one run that does not count, and a burst of runs that do. Whoever is more
    than ten times slower than the fastest takes every fifth turn, and runs once.
    """
    first = {name: _timed(run) for name, run in runs.items()}
    quickest = min(first.values())
    found: dict[str, Rounds] = {name: [] for name in runs}
    end, turn = time.perf_counter() + seconds, 0
    while turn < 2 or time.perf_counter() < end:
        for name, run in runs.items():
            is_slow = first[name] > 10 * quickest and first[name] > BURST_SECONDS
            if is_slow and turn % 5:
                continue
            time.sleep(PAUSE)
            if not is_slow:
                run()
            burst = 1 if is_slow else max(1, min(LONGEST_BURST, int(BURST_SECONDS / first[name])))
            found[name].append([_timed(run) for _ in range(burst)])
        turn += 1
    return found


def ratio(times: Rounds, base: Rounds, statistic: str, resamples: int = 400) -> Ratio:
    """Return how a statistic of the times compares with that of others.

    Whole turns are resampled: runs of one turn are disturbed together.
    """
    compute = STATISTICS[statistic]
    rng = np.random.default_rng(0)

    def of(rounds: Rounds, chosen: NDArray[np.int64] | None = None) -> float:
        picked = rounds if chosen is None else [rounds[i] for i in chosen]
        return compute(np.concatenate([np.asarray(turn) for turn in picked]))

    resampled = [
        of(times, rng.integers(len(times), size=len(times)))
        / of(base, rng.integers(len(base), size=len(base)))
        for _ in range(resamples)
    ]
    low, high = np.percentile(resampled, [2.5, 97.5])
    return Ratio(of(times) / of(base), float(low), float(high))


def _timed(run: Run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
