"""A clock with the time and a wait function, which tests replace."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """Source of the time for measurements.

    Attributes:
        now: function that returns seconds since an arbitrary moment and never decreases.
        sleep: function that waits for a number of seconds.
    """

    now: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], object] = time.sleep
