"""How a process ended, in words."""

from __future__ import annotations

import signal


def ended_by(status: int) -> str:
    """Return how a process with this status ended, to follow its name.

    >>> ended_by(3), ended_by(-9)
    ('ended with status 3', 'was ended by SIGKILL (Killed)')

    Args:
        status: as ``subprocess`` has it, negative for a signal.
    """
    if status >= 0:
        return f"ended with status {status}"
    try:
        number = signal.Signals(-status)
    except ValueError:
        return f"was ended by signal {-status}"
    return f"was ended by {number.name} ({signal.strsignal(number)})"
