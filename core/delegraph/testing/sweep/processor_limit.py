"""Limit on the processor time of a run, which does not depend on other load of the machine."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

from delegraph.errors import CallCancelledError, TimeLimitError

LOOK_EVERY = 0.1
"""Seconds between two checks of the time that a run has taken."""


class ProcessorLimit:
    """Context of a run; calls in it are cancelled once they have used too much processor time.

    Args:
        seconds: processor time of all threads, and of child processes that have ended.
        wall_seconds: seconds of elapsed time that a run may take, in case it waits for ever.

    Attributes:
        interpreter: interpreter whose running call is cancelled; None before it exists.
    """

    def __init__(self, seconds: float, wall_seconds: float) -> None:
        self.interpreter: Any = None
        self._limits = seconds, wall_seconds
        self._is_over = threading.Event()
        self._exceeded = ""
        self._thread = threading.Thread(target=self._watch, name="processor limit", daemon=True)

    def __enter__(self) -> ProcessorLimit:
        self._begin = _processor_time(), time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def error_of(self, error: Exception) -> Exception:
        """Return the time-limit error if *error* ended a call that this limit has cancelled.

        Otherwise *error* itself is returned.
        """
        if not self._exceeded or not isinstance(error, CallCancelledError):
            return error
        return TimeLimitError(f"The run took more than {self._exceeded} and was stopped")

    def _watch(self) -> None:
        seconds, wall_seconds = self._limits
        while not self._is_over.wait(LOOK_EVERY):
            if _processor_time() - self._begin[0] > seconds:
                self._exceeded = f"{seconds:g} s of processor time"
            elif time.monotonic() - self._begin[1] > wall_seconds:
                self._exceeded = f"{wall_seconds:g} s"
            if self._exceeded and hasattr(self.interpreter, "cancel"):
                self.interpreter.cancel()  # again, until it has met a running call


def _processor_time() -> float:
    """Seconds of processor time of this process and of its children that have ended."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system
