"""The access log: a line of JSON for each request."""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

from delegraph.errors import ArgumentError

_LOG = logging.getLogger(__name__)


class AccessLog:
    """Writes a line of JSON for each request; a full disk costs lines and nothing else.

    Args:
        target: path of the file, which is appended to; ``-`` for standard output; None for no log.

    Raises:
        ArgumentError: the file cannot be opened.
    """

    def __init__(self, target: str | None) -> None:
        self._file: IO[str] | None = None
        self._is_own = target not in (None, "-")
        self._has_failed = False
        if target == "-":
            self._file = sys.stdout
        elif target is not None:
            try:
                self._file = Path(target).open("a", encoding="utf-8")  # noqa: SIM115 - closed below
            except OSError as error:
                raise ArgumentError(
                    f"--access-log {target!r} cannot be opened: {error.strerror}"
                ) from error

    @property
    def is_on(self) -> bool:
        """Whether lines are written."""
        return self._file is not None

    def write(self, **facts: Any) -> None:
        """Write a line.

        Args:
            facts: what the line says; None is left out.
        """
        if self._file is None:
            return
        time = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        kept = {name: value for name, value in facts.items() if value is not None}
        try:
            self._file.write(json.dumps({"time": time, **kept}) + "\n")
            self._file.flush()
            self._has_failed = False
        except (OSError, ValueError) as error:
            if not self._has_failed:
                _LOG.warning("lines of the access log are lost: %s", error)
            self._has_failed = True

    def close(self) -> None:
        """Close the file."""
        if self._file is not None and self._is_own:
            try:
                self._file.close()
            except OSError as error:
                _LOG.warning("the last lines of the access log are lost: %s", error)
        self._file = None
