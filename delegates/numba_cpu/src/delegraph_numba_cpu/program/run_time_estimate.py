"""Estimates the run time of a program, from which the number of threads follows."""

from __future__ import annotations

from math import inf

TINY = 8e-6
"""Seconds below which a run gains nothing from workers."""

BRIEF = 30e-6
"""Seconds below which a run in one thread gains nothing from releasing the GIL."""

SHORT = 100e-6
"""Seconds below which a run may be slower with workers, so that it is tried with and without."""

LONG = 3e-3
"""Seconds below which even the first run of a short program, on untouched memory, stays."""

TRIALS = 3
"""Number of trials without workers, before and after those with workers; the fastest counts."""

SHARED_TRIALS = 100
"""Number of trials with workers; the first is slower, because it starts or wakes the workers."""

ORDER = (False,) * TRIALS + (True,) * SHARED_TRIALS + (False,) * TRIALS
"""Whether each trial uses workers, in order.

The first runs are slower than later ones, so runs without workers are also tried at the end.
"""

GAIN = 0.95
"""Largest share of the time in one thread that a run with workers must take to be worth them."""


FIRST_RUNS, RUNS = 1_000, 10_000
"""Number of runs in one thread after which both ways are tried again: at first, and later.

While other threads use the processors, for example at the start, workers seem to gain nothing.
"""


class RunTimeEstimate:
    """Estimate, from first runs, of a program's time and of whether workers make it faster.

    Args:
        may_take_workers: whether a run can use workers.

    Attributes:
        is_known: whether the estimate is made; until then, runs are timed.
        is_brief: whether a run is very short and takes no workers; False while unknown.
        takes_workers: whether the next run should use workers.
        runs_until_trial: number of calls of :meth:`count_run` until both ways are tried again; 0
            if they are not tried again.
    """

    __slots__ = (
        "_alone", "_may_take_workers", "_next_runs", "_runs", "_together", "is_brief",
        "is_known", "runs_until_trial", "takes_workers",
    )  # fmt: skip

    def __init__(self, may_take_workers: bool = True) -> None:
        self._may_take_workers = may_take_workers
        self._next_runs = FIRST_RUNS
        self._begin()

    def _begin(self) -> None:
        self.is_known = self.is_brief = self.takes_workers = False
        self._alone, self._together, self._runs, self.runs_until_trial = inf, inf, 0, 0

    def observe(self, seconds: float, *, has_workers: bool = False) -> None:
        """Record the duration of a run, and decide once enough runs are known.

        Args:
            seconds: duration of the run.
            has_workers: whether worker threads took part in it.
        """
        if has_workers != self.takes_workers:
            return  # another caller had the workers, so this run says nothing about them
        self._runs += 1
        if has_workers:
            self._together = min(self._together, seconds)
        else:
            self._alone = min(self._alone, seconds)
        alone, may_take_workers = self._alone, self._may_take_workers
        if alone < (TINY if may_take_workers else BRIEF):
            self._decide(False)
        elif (may_take_workers and alone > LONG) or (self._runs >= TRIALS and alone > SHORT):
            self._decide(may_take_workers)
        elif self._runs >= len(ORDER):
            self._decide(self._together < GAIN * alone)
            if not self.takes_workers:
                self.runs_until_trial, self._next_runs = self._next_runs, RUNS
        elif may_take_workers:
            self.takes_workers = ORDER[self._runs]

    def count_run(self) -> None:
        """Count a run of known time; called only while :attr:`runs_until_trial` is not 0.

        After the last of these runs, the estimate begins anew.
        """
        self.runs_until_trial -= 1
        if not self.runs_until_trial:
            self._begin()

    def _decide(self, takes_workers: bool) -> None:
        self.takes_workers = takes_workers
        self.is_brief = not takes_workers and self._alone < BRIEF
        self.is_known = True  # last, in case of an interrupt
