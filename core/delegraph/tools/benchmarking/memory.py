"""Present and peak memory of this process."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

_CLEAR_REFS = "/proc/self/clear_refs"
_RESET_PEAK = "5"
"""Text that sets the peak to the present resident memory: ``proc_pid_clear_refs(5)``."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory of this process in bytes; None if the system does not report it.

    Attributes:
        current: present resident memory.
        peak: largest resident memory since the process began or since :func:`reset_peak`.
    """

    current: int | None
    peak: int | None


def memory(status: str = "/proc/self/status") -> Memory:
    """Return the resident memory of this process and its peak.

    Systems other than Linux report the peak only.

    Args:
        status: file in which Linux reports the memory.
    """
    try:
        with open(status, encoding="ascii", errors="replace") as file:
            text = file.read()
    except OSError:
        return Memory(None, _peak_of_usage())
    return Memory(_bytes(text, "VmRSS"), _bytes(text, "VmHWM"))


def reset_peak() -> bool:
    """Set the peak to the present resident memory; return whether the system allows it."""
    try:
        with open(_CLEAR_REFS, "w", encoding="ascii") as file:
            file.write(_RESET_PEAK)
    except OSError:
        return False
    return True


def _bytes(status: str, name: str) -> int | None:
    found = re.search(rf"^{name}:\s*(\d+) kB$", status, re.MULTILINE)
    return 1024 * int(found[1]) if found else None


def _peak_of_usage() -> int | None:
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
