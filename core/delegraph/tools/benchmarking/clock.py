"""Source of time and waiting; tests replace it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """Functions that read the time and wait.

    Attributes:
        now: seconds since any moment; never goes back.
        sleep: waits so many seconds.
    """

    now: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], object] = time.sleep
