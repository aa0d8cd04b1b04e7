"""Shortens Python's thread switch interval while an official interpreter runs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _SwitchInterval:
    """Python's thread switch interval, lowered while at least one thread asks for that."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted: list[float] = []
        self._normal = 0.0

    def lower(self, seconds: float) -> None:
        """Let *seconds* count, unless another thread wants less."""
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
    """Let *seconds* be the switch interval of the process inside; see ``sys``."""
    _SWITCH_INTERVAL.lower(seconds)
    try:
        yield
    finally:
        _SWITCH_INTERVAL.restore(seconds)
