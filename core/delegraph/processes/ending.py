"""Describes in words how a process ended."""

from __future__ import annotations

import signal
from dataclasses import dataclass


def how_it_ended(status: int) -> str:
    """Text for exit code *status* of a process: name of the signal, or the exit code.

    >>> how_it_ended(3), how_it_ended(-11), how_it_ended(-99)
    ('exit code 3', 'SIGSEGV', 'signal 99')

    Args:
        status: exit code as in ``subprocess``; negative for a signal.
    """
    if status >= 0:
        return f"exit code {status}"
    return signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"


@dataclass(frozen=True, slots=True)
class Death:
    """Description of the end of a process that had not answered a request.

    Attributes:
        how: text such as ``exit code 3``, ``SIGSEGV`` or ``no answer after 5 s``.
        is_hung: whether the process was killed because its time was up.
        last_line: last line of its standard error; empty if it was not captured.
    """

    how: str
    is_hung: bool = False
    last_line: str = ""

    @property
    def text(self) -> str:
        """Text that says how the process ended: ``the process ended with SIGSEGV``."""
        return self.how if self.is_hung else f"the process ended with {self.how}"
