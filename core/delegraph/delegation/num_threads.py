"""Limits on the number of threads for this machine."""

from __future__ import annotations

import os

from delegraph.log import Logger

logger = Logger(__name__)

FOR_EACH_PROCESSOR = 8
"""Number of threads that are allowed for each processor.

More threads than processors gain nothing, but a model's author may have meant another machine.
"""


def limited_num_threads(count: int) -> int:
    """Return *count*, but at most eight threads per usable processor; log it if reduced.

    Thousands of threads would exhaust the memory and block everything else on the machine.
    """
    most = FOR_EACH_PROCESSOR * usable_processors()
    if count <= most:
        return count
    logger.warning(
        "num_threads is %d; %d are used, the most for the %d processors that this process may use",
        count,
        most,
        most // FOR_EACH_PROCESSOR,
    )
    return most


def usable_processors() -> int:
    """Return the number of processors that this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
