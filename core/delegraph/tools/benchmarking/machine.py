"""Properties and load of the machine, which affect run times."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from delegraph.json_records import JsonRecord
from delegraph.tools.machine_report import Processor, processor, versions

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
