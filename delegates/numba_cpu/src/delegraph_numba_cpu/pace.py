"""How long a program takes, as far as that decides how it is run."""

from __future__ import annotations

from math import inf

BRIEF = 30e-6
"""Seconds: what is over sooner gains nothing from other threads, nor from letting them run."""

TRIALS = 3


class Pace:
    """Whether a program is over in no time, learnt from its first runs.

    Attributes:
        is_known: whether that has been found out; while not, runs are to be timed, in one thread.
        is_brief: whether it is; False while not known.
    """

    __slots__ = ("_best", "_trials", "is_brief", "is_known")

    def __init__(self) -> None:
        self.is_known = self.is_brief = False
        self._best, self._trials = inf, 0

    def observe(self, seconds: float) -> None:
        """Take into account how long a run took in one thread."""
        self._trials += 1
        self._best = min(self._best, seconds)
        # The first run finds memory untouched, but that does not make a hundred of one.
        self.is_known = self._trials >= TRIALS or self._best < BRIEF or self._best > 100 * BRIEF
        self.is_brief = self._best < BRIEF
