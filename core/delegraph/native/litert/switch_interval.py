"""Shortens Python's thread switch interval while an official interpreter runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from delegraph.locks import Lock


class _SwitchInterval:
    """Python's thread switch interval, lowered while at least one thread requests it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._wanted: list[float] = []
        self._normal = 0.0

    def lower(self, seconds: float) -> None:
        """Lower the interval to *seconds*, unless another thread has requested less."""
        with self._lock:
            if not self._wanted:
                self._normal = sys.getswitchinterval()
            self._wanted.append(seconds)
            sys.setswitchinterval(min(self._wanted))

    def restore(self, seconds: float) -> None:
        """Undo one call of :meth:`lower` with the same *seconds*."""
        with self._lock:
            self._wanted.remove(seconds)
            sys.setswitchinterval(min(self._wanted, default=self._normal))


_SWITCH_INTERVAL = _SwitchInterval()


@contextmanager
def switching(seconds: float) -> Iterator[None]:
    """Context in which a busy Python thread must yield to others after *seconds*.

    This is the switch interval of the whole process; see ``sys.setswitchinterval``.
    """
    _SWITCH_INTERVAL.lower(seconds)
    try:
        yield
    finally:
        _SWITCH_INTERVAL.restore(seconds)
