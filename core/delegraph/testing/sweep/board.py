"""Board: a worker's current case and its counts of outcomes, in shared memory."""

from __future__ import annotations

import mmap
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np

from delegraph.testing.sweep.judging import OFFICIAL, OURS, OUTCOMES, Ending

PHASES = ("", OURS, OFFICIAL)
COUNTED = (*OUTCOMES, "failed", "delegated", "taken")
NUMBER, PHASE, STARTED, FIRST_COUNT = range(4)


class Board:
    """Shared memory in which a worker process notes its current case and counts outcomes.

    Args:
        groups: names of groups of cases that are counted separately.
    """

    def __init__(self, groups: Sequence[str] = ("",)) -> None:
        size = FIRST_COUNT + len(groups) * len(COUNTED)
        self._memory = mmap.mmap(-1, 8 * size)
        self.cells = np.frombuffer(self._memory, np.int64)
        self._table = self.cells[FIRST_COUNT:].reshape(len(groups), len(COUNTED))
        self._rows = {group: row for row, group in enumerate(groups)}

    def announce(self, phase: str) -> None:
        """Note that a phase of the current case begins; *phase* is one of :data:`PHASES`."""
        self.cells[PHASE] = PHASES.index(phase)

    def begin(self, number: int) -> None:
        """Note the number of the case that begins, and the time."""
        self.cells[NUMBER], self.cells[STARTED] = number, time.monotonic_ns()

    def rest(self) -> None:
        """Note that no case is running."""
        self.announce("")
        self.cells[STARTED] = 0

    def end(self, ending: Ending) -> None:
        """Count the *ending* of a case by outcome, in its group."""
        self.rest()
        self.count(ending.outcome, ending.group)
        row, fault = self._table[self._rows[ending.group]], ending.fault
        row[COUNTED.index("failed")] += fault is not None and fault.kind != "differs"
        row[COUNTED.index("delegated")] += ending.delegated
        for op in ending.taken:
            if op in self._rows:
                self._table[self._rows[op], COUNTED.index("taken")] += 1

    def count(self, outcome: str, group: str = "") -> None:
        """Add one to the number of cases with *outcome* in *group*."""
        self._table[self._rows[group], COUNTED.index(outcome)] += 1

    @property
    def number(self) -> int:
        """Number of the current case, or of the last case."""
        return int(self.cells[NUMBER])

    @property
    def phase(self) -> str:
        """Current phase, one of :data:`PHASES`."""
        return PHASES[int(self.cells[PHASE])]

    def seconds(self) -> float:
        """Return the seconds since the current case began; 0 if none is running."""
        started = int(self.cells[STARTED])
        return (time.monotonic_ns() - started) / 1e9 if started else 0.0

    def counts(self) -> Counter[str]:
        """Return the number of cases for each outcome."""
        return Counter(dict(zip(COUNTED, self._table.sum(axis=0).tolist(), strict=True)))

    def counts_of(self, group: str) -> Counter[str]:
        """Return the number of cases of a group for each outcome."""
        found = self._table[self._rows[group]].tolist()
        return Counter(dict(zip(COUNTED, found, strict=True)))
