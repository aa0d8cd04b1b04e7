"""Work of other processes while a benchmark runs."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

NOTABLE = 0.1
"""Share of the usable cores from which on the work of other processes is worth a warning."""


@dataclass(slots=True)
class OtherWork:
    """Measures how many cores other processes use from the object's creation on.

    Attributes:
        status: file in which Linux reports the busy time of processors.
    """

    status: str = "/proc/stat"
    _begin: tuple[float, float, float] | None = field(init=False)

    def __post_init__(self) -> None:
        self._begin = self._now()

    def cores(self) -> float | None:
        """Return the mean number of cores that other processes have used; None if unknown."""
        begin, now = self._begin, self._now()
        if begin is None or now is None or now[0] - begin[0] < 0.1:  # a tick is 0.01 s
            return None
        wall, busy, own = (after - before for after, before in zip(now, begin, strict=True))
        return max(0.0, (busy - own) / wall)

    def _now(self) -> tuple[float, float, float] | None:
        """Return seconds of the clock, of the work of all processors, and of this process.

        The last number includes child processes. The result is None if the system does
        not report the work of processors.
        """
        try:
            with open(self.status, encoding="ascii") as file:
                user, nice, system, _idle, _wait, *others = map(int, file.readline().split()[1:])
        except (OSError, ValueError):
            return None
        times = os.times()
        own = times.user + times.system + times.children_user + times.children_system
        busy = user + nice + system + sum(others[:3])  # interrupts, and what a hypervisor took
        return time.monotonic(), busy / os.sysconf("SC_CLK_TCK"), own
