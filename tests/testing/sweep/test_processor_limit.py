"""A sweep stops runs by their processor time, so that a busy machine changes no result."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

pytest.importorskip("resource", reason="a sweep's workers are POSIX processes")

from delegraph.errors import CallCancelledError, OperatorError, TimeLimitError
from delegraph.testing.sweep import hosts
from delegraph.testing.sweep.judging import Run

BUSY = "import time\nwhile time.process_time() < 0.4: pass"


class Waiting:
    """Interpreter whose invoke does something so many times, or until it is cancelled."""

    def __init__(self, act: Any, times: int) -> None:
        self._act, self._times, self._is_cancelled = act, times, False

    def invoke(self) -> None:
        """Act until cancelled."""
        for _ in range(self._times):
            self._act()
            if self._is_cancelled:
                raise CallCancelledError("cancelled")

    def cancel(self) -> None:
        """Let the invoke stop."""
        self._is_cancelled = True

    def get_output_details(self) -> list[Any]:
        """Return no outputs."""
        return []


def run(act: Any, times: int = 1 << 20) -> Run:
    opened = Waiting(act, times)
    return hosts.run(lambda content: opened, b"", 1, lambda opened, step: None, seconds=0.3)


def test_a_run_that_waits_for_the_processor_is_not_stopped() -> None:
    assert run(lambda: time.sleep(0.05), times=12).error is None


def test_a_run_that_computes_for_too_long_is_stopped() -> None:
    error = run(lambda: np.sort(np.arange(10_000))).error
    assert isinstance(error, TimeLimitError)
    assert str(error) == "The run took more than 0.3 s of processor time and was stopped"


def test_processor_time_of_child_processes_counts() -> None:
    error = run(lambda: subprocess.run([sys.executable, "-c", BUSY], check=True)).error
    assert isinstance(error, TimeLimitError)


def test_a_run_that_never_ends_is_stopped_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hosts, "WALL_LIMIT", 0.3)
    error = run(lambda: time.sleep(0.05)).error
    assert str(error) == "The run took more than 0.3 s and was stopped"


def test_an_error_of_its_own_stays() -> None:
    def fail() -> None:
        end = time.process_time() + 0.5
        while time.process_time() < end:
            pass
        raise OperatorError("no such axis")

    assert isinstance(run(fail).error, OperatorError)
