"""Estimates the run time of a program, from which the number of threads follows."""

from __future__ import annotations

from math import inf

BRIEF = 30e-6
"""Seconds below which a run gains nothing from workers, nor from releasing the GIL."""

SHORT = 100e-6
"""Seconds below which a run may be slower with workers, so that both ways are tried."""

LONG = 3e-3
"""Seconds that no short program takes, even in its first run on untouched memory."""

TRIALS = 3
"""Number of runs with and without workers, the fastest of which counts."""


class RunTimeEstimate:
    """Estimate, from first runs, of a program's time and of whether workers make it faster.

    Attributes:
        is_known: whether the estimate is final; until then, runs are timed.
        is_brief: whether a run is very short; False while unknown.
        takes_workers: whether the next run should use workers.
    """

    __slots__ = ("_alone", "_runs", "_together", "is_brief", "is_known", "takes_workers")

    def __init__(self) -> None:
        self.is_known = self.is_brief = self.takes_workers = False
        self._alone, self._together, self._runs = inf, inf, 0

    def observe(self, seconds: float, *, has_workers: bool = False) -> None:
        """Record that a run took *seconds*, in one thread or, if *has_workers*, with workers."""
        if has_workers != self.takes_workers:
            return  # another caller had the workers, so this run says nothing about them
        self._runs += 1
        if has_workers:
            self._together = min(self._together, seconds)
            if self._runs > TRIALS:  # the first run with workers starts the threads
                self.takes_workers = self._together < self._alone
                self.is_known = True
            return
        self._alone = best = min(self._alone, seconds)
        if self._runs >= TRIALS or best < BRIEF or best > LONG:
            self.is_brief = best < BRIEF
            self.takes_workers, self._runs = not self.is_brief, 0
            # Assigned last, in case of an interrupt before.
            self.is_known = best < BRIEF or best > SHORT
