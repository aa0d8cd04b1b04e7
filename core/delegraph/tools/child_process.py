"""Processes that tools start: how they are ended, and how they ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys


def end_with_its_own(process: subprocess.Popen[bytes]) -> None:
    """End a process that goes on, and those that it started.

    Args:
        process: started with ``start_new_session=True``.
    """
    if sys.platform == "win32":
        process.kill()
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody is left
        os.killpg(process.pid, signal.SIGKILL)


def how_it_ended(code: int) -> str:
    """Return the exit status of a process in words.

    >>> how_it_ended(3), how_it_ended(-11), how_it_ended(-99)
    ('exit code 3', 'SIGSEGV', 'signal 99')
    """
    if code >= 0:
        return f"exit code {code}"
    return signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
