"""Shows the library's log on standard error while a command runs."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator

from delegraph.errors import printable

LEVELS = ("debug", "info", "warning", "error")
"""Values of ``--log-level``."""

_OF_MODELS = {
    "delegraph.graph.loader",
    "delegraph.runtime.delegates.delegate_stack",
    "delegraph.runtime.subgraph",
}
"""Loggers of a loaded model; INFO lines that repeat, as it is loaded again, are shown once."""

_OF_THE_MACHINE = {"delegraph.delegation.num_threads"}
"""Loggers whose lines repeat for each interpreter of a command; each line is shown once."""


@contextlib.contextmanager
def shown_log() -> Iterator[None]:
    """Context in which log records from level WARNING on are shown; see :func:`show_from`."""
    handler = _Echo(logging.WARNING)
    with handler.undo:
        handler.listen_to("delegraph")
        yield


def show_from(level: str) -> None:
    """Show log records of Delegraph and the plugins at *level*, of :data:`LEVELS`, or above."""
    from delegraph.plugins.choice import PluginChoice
    from delegraph.plugins.discovery import declared_plugins

    handlers = logging.getLogger("delegraph").handlers
    for handler in [handler for handler in handlers if isinstance(handler, _Echo)]:
        handler.setLevel(level.upper())
        declared = declared_plugins(PluginChoice.of(None, None))
        for name in ("delegraph", *sorted({p.module.partition(".")[0] for p in declared})):
            handler.listen_to(name)


@contextlib.contextmanager
def hidden_log(name: str) -> Iterator[None]:
    """Context in which the records of logger *name* are dropped."""
    logger = logging.getLogger(name)
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = False


class _Echo(logging.Handler):
    """Log handler that prints log records on standard error; ``undo`` restores all loggers."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.undo = contextlib.ExitStack()
        self._shown: set[str] = set()

    def listen_to(self, name: str) -> None:
        """Show the records of logger *name* and its children, down to this handler's level."""
        logger = logging.getLogger(name)
        self.undo.callback(logger.setLevel, logger.level)
        if not logger.isEnabledFor(self.level):
            logger.setLevel(self.level)
        if self not in logger.handlers:
            logger.addHandler(self)
            self.undo.callback(logger.removeHandler, self)

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record on one line; below WARNING, its logger's name comes first.

        A child process's record that has been printed, as by another child, is left out.
        """
        source = f"{record.name}: " if record.levelno < logging.WARNING else ""
        text = printable(record.getMessage())
        is_of_model = record.levelno == logging.INFO and record.name in _OF_MODELS
        repeats = is_of_model or record.name in _OF_THE_MACHINE
        if text in self._shown and (repeats or record.process != os.getpid()):
            return
        self._shown.add(text)
        print(f"{record.levelname.lower()}: {source}{text}", file=sys.stderr)
