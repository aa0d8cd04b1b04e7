"""What a process holds: memory, files, threads, and whether that grows."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

MEMORY_GROWTH = 24 << 20
"""Bytes by which memory may grow after the first third: what allocators do by themselves."""

FEWEST = 6
"""Samples from which on growth is judged."""


@dataclass(frozen=True)
class Sample:
    """Amounts of memory, files and threads that the process has at one time.

    Attributes:
        bytes: resident memory.
        files: open descriptors.
        threads: of the system.
        python_threads: of those, Python's.
    """

    bytes: int
    files: int
    threads: int
    python_threads: int


def sample() -> Sample:
    """Return the present amounts, without garbage and memory that ``malloc`` keeps."""
    gc.collect()
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(0.5)  # one that watched a time limit may just be ending
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
    if trim is not None:
        trim(0)
    process = psutil.Process(os.getpid())
    return Sample(
        process.memory_info().rss,
        process.num_fds(),
        process.num_threads(),
        threading.active_count(),
    )


def growth(samples: Sequence[Sample]) -> list[str]:
    """Return a sentence for each quantity that grew from the second third to the last third.

    The least sample of each third counts. Open interpreters hold files and threads, so a sample
    shows a leak only when few of them are open.
    """
    if len(samples) < FEWEST:
        return []
    third = len(samples) // 3
    before, after = samples[third : 2 * third], samples[-third:]
    found = []
    for name, allowed in (("bytes", MEMORY_GROWTH), ("files", 1), ("threads", 1),
                          ("python_threads", 0)):  # fmt: skip
        old, new = (min(getattr(s, name) for s in part) for part in (before, after))
        if new > old + allowed:
            found.append(f"{name} grew from {old} to {new}")
    return found
