"""The access log: one line of JSON for each request."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from datetime import datetime, timezone
from queue import SimpleQueue
from typing import IO, Any

from delegraph.errors import ArgumentError

_LOG = logging.getLogger(__name__)

_WAITING = 10_000
"""Largest number of lines that wait to be written; further lines are lost."""

_END = 2.0
"""Seconds within which the last lines must be written at the end."""


class AccessLog:
    """Writes a line of JSON for each request; if the disk is full, lines are lost.

    A thread writes the lines, so that a slow disk or reader does not delay requests.

    Args:
        target: path of the file to which lines are appended; ``-`` means standard output; None
            means no log.

    Raises:
        ArgumentError: the file cannot be opened.
    """

    def __init__(self, target: str | None) -> None:
        self._thread: threading.Thread | None = None
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._has_failed = False
        if target is None:
            return
        try:
            source: int | str = os.dup(sys.stdout.fileno()) if target == "-" else target
            file = open(source, "ab", buffering=0)  # noqa: SIM115 - the thread closes it
        except OSError as error:
            raise ArgumentError(
                f"--access-log {target!r} cannot be opened: {error.strerror}"
            ) from error
        self._thread = threading.Thread(target=self._run, args=(file,), daemon=True)
        self._thread.start()

    @property
    def is_on(self) -> bool:
        """Whether lines are written."""
        return self._thread is not None

    def write(self, **facts: Any) -> None:
        """Write a line.

        Args:
            facts: fields of the line; fields of None are omitted.
        """
        if self._thread is None:
            return
        if self._lines.qsize() >= _WAITING:
            self._warn("too many wait to be written")
            return
        time = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        kept = {name: value for name, value in facts.items() if value is not None}
        self._lines.put(json.dumps({"time": time, **kept}).encode() + b"\n")

    def _run(self, file: IO[bytes]) -> None:
        with file:
            while (line := self._lines.get()) is not None:
                try:
                    file.write(line)
                    self._has_failed = False
                except OSError as error:
                    self._warn(str(error))

    def _warn(self, reason: str) -> None:
        if not self._has_failed:
            _LOG.warning("lines of the access log are lost: %s", reason)
        self._has_failed = True

    def close(self) -> None:
        """Write the last lines, and close the file."""
        if self._thread is not None:
            self._lines.put(None)
            self._thread.join(_END)
            self._thread = None
