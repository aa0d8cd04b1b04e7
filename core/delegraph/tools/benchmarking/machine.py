"""Properties of the machine and work of other processes, which affect run times."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from delegraph.json_records import JsonRecord
from delegraph.tools.machine_report import Processor, processor, versions

NOTABLE = 0.1
"""Share of the usable cores from which on the work of other processes is worth a warning."""

_GOVERNORS = "cpu*/cpufreq/scaling_governor"


@dataclass(frozen=True, slots=True)
class Machine(JsonRecord):
    """Properties of the machine that affect run times.

    Attributes:
        processor: the processor and the memory.
        system: operating system, as one line of text.
        python: version of the interpreter.
        versions: versions of Delegraph and of the packages it uses, as far as they are installed.
        governors: names of the policies that choose the cores' clock rate; empty if unknown.
        load: mean number of processes that ran or waited in the last 1, 5 and 15 minutes; None on
            Windows.
        date: time of the measurement, in UTC: ``2030-01-02T03:04:05Z``.
    """

    processor: Processor
    system: str
    python: str
    versions: dict[str, str]
    governors: tuple[str, ...]
    load: tuple[float, float, float] | None
    date: str


def machine(cpus: Path = Path("/sys/devices/system/cpu")) -> Machine:
    """Return the properties and the present state of this machine.

    Args:
        cpus: folder in which Linux describes its processors.
    """
    return Machine(
        processor(),
        platform.platform(),
        platform.python_version(),
        {name: version for name, version in versions().items() if version is not None},
        _governors(cpus),
        os.getloadavg() if hasattr(os, "getloadavg") else None,
        datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def _governors(cpus: Path) -> tuple[str, ...]:
    """Return the clock-rate policies (governors) of the cores in the folder *cpus*, sorted."""
    found = set()
    for path in sorted(cpus.glob(_GOVERNORS)):
        try:
            found.add(path.read_text(encoding="ascii").strip())
        except OSError:  # a core that is switched off
            continue
    return tuple(sorted(found))


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
