"""Sizes of the processor's caches, from the system."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import NamedTuple

from delegraph_numba_cpu.library.cpu import system_value


class Cache(NamedTuple):
    """One level of the processor's caches.

    Attributes:
        name: ``L1``, ``L2`` or ``L3``.
        size: size of one such cache in bytes.
        cores: number of cores that share it.
    """

    name: str
    size: int
    cores: int = 1

    def capacity(self, threads: int) -> int:
        """Return the total bytes of the caches of this level that *threads* cores use."""
        return self.size * ceil(threads / self.cores)


TYPICAL = (Cache("L1", 32 << 10), Cache("L2", 1 << 20), Cache("L3", 8 << 20, 4))
"""Caches that are assumed if the system does not describe them."""

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def caches(folder: Path = Path("/sys/devices/system/cpu")) -> tuple[Cache, ...]:
    """Return the caches of data, the smallest first; typical ones if the system describes none.

    Args:
        folder: folder in which Linux describes its processors.
    """
    found = _of_macos() if sys.platform == "darwin" else _of_linux(folder)
    return tuple(sorted(found, key=lambda cache: cache.size)) or TYPICAL


def _of_linux(folder: Path) -> list[Cache]:
    cpu = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    found: dict[str, tuple[int, int]] = {}
    for index in sorted(folder.glob(f"cpu{cpu}/cache/index*")):
        # A virtual machine may not describe its caches.
        with suppress(OSError, ValueError, KeyError):
            words = {key: _word(index / key) for key in ("level", "type", "size")}
            sharers = sum(_counts(_word(index / "shared_cpu_list")))
            if words["type"] in ("Data", "Unified"):
                size = int(words["size"][:-1]) * _UNITS[words["size"][-1]]
                found[f"L{int(words['level'])}"] = size, sharers
    # A cache of the first level belongs to one core, although several hardware threads use it.
    threads = max(1, found.get("L1", (0, 1))[1])
    return [Cache(name, size, max(1, n // threads)) for name, (size, n) in found.items()]


def _word(path: Path) -> str:
    return path.read_text(encoding="ascii").strip()


def _counts(listed: str) -> Iterator[int]:
    """Yield the length of each range in a list such as ``0-3,8``: 4, then 1."""
    for part in listed.split(","):
        first, _, last = part.partition("-")
        yield int(last or first) - int(first) + 1


def _of_macos() -> list[Cache]:
    names = ("hw.perflevel0.l1dcachesize", "hw.perflevel0.l2cachesize")
    cores = max(1, system_value("hw.perflevel0.cpusperl2"))
    sizes = [system_value(name) for name in names]
    found = [Cache("L1", sizes[0]), Cache("L2", sizes[1], cores)]
    return [cache for cache in found if cache.size > 0]
