"""Loggers that import the standard ``logging`` only when there is something to log."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import logging


class Logger:
    """The logger of a module, as ``logging.getLogger(name)`` returns it.

    Messages of level INFO and DEBUG are dropped until the program imports and configures
    ``logging``, since they would not be shown.

    Args:
        name: the module's ``__name__``.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._standard: logging.Logger | None = None

    def debug(self, text: str, *values: Any) -> None:
        """Log ``text % values`` at level DEBUG if the program has imported ``logging``."""
        if "logging" in sys.modules:
            self.standard().debug(text, *values, stacklevel=2)

    def info(self, text: str, *values: Any) -> None:
        """Log *text*, formatted with *values*, at level INFO if the program uses ``logging``."""
        if "logging" in sys.modules:
            self.standard().info(text, *values, stacklevel=2)

    def is_wanted(self) -> bool:
        """Whether INFO messages are shown; otherwise the caller need not compute their text."""
        return "logging" in sys.modules and self.standard().isEnabledFor(20)  # logging.INFO

    def warning(self, text: str, *values: Any) -> None:
        """Log ``text % values`` as a warning, which ``logging`` prints even if not configured."""
        self.standard().warning(text, *values, stacklevel=2)

    @contextmanager
    def warning_when_slow(self, seconds: float, text: str, *values: Any) -> Iterator[None]:
        """Log ``text % values`` as a warning once if the block takes more than *seconds*."""
        import threading

        timer = threading.Timer(seconds, self.warning, (text, *values))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def log(self, level: int, text: str, *values: Any) -> None:
        """Log ``text % values`` at *level*, a level of ``logging``."""
        self.standard().log(level, text, *values, stacklevel=2)

    def standard(self) -> logging.Logger:
        """Return the logger of the standard library.

        The logger is looked up once: ``logging.getLogger`` acquires a lock each time, and Ctrl-C at
        the wrong moment leaves the lock held.
        """
        if self._standard is None:
            import logging

            self._standard = logging.getLogger(self._name)
        return self._standard
