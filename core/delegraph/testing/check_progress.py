"""Shows the progress of checks on a terminal, after pytest's dots."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable

from delegraph.testing.conformance.run_reports import CheckBegins, ModelBegins, Sign

PAUSE = 0.2
"""Least number of seconds between two texts."""

_SHOW = "\x1b7{text}\x1b[K\x1b8"
"""Terminal codes that show a text and then move the cursor back to where pytest writes."""


class CheckProgress:
    """Shows after pytest's dots, on a terminal, how many models the running check has tried.

    Args:
        column: function that returns the number of columns that pytest has filled in the line.
    """

    def __init__(self, column: Callable[[], int]) -> None:
        self._column = column
        self._done = self._total = self._models = 0
        self._what = ""
        self._start = self._last = 0.0

    def check_begins(self, total: int) -> None:
        """Begin a check, which is one of *total* checks."""
        self._what, self._models, self._total = "", 0, total
        self._start, self._last = time.monotonic(), 0.0

    def hear(self, sign: Sign) -> None:
        """Record the progress message *sign*, and show the progress from time to time."""
        if isinstance(sign, CheckBegins):
            self._what = f"{sign.note['delegate']}: {sign.note['check']}"
        self._models += isinstance(sign, ModelBegins)
        now = time.monotonic()
        if self._what and now - self._last >= PAUSE:
            self._last = now
            at = f"model {self._models}, {now - self._start:.0f} s"
            self._show(f"  {self._what}: {at} ({self._done} of {self._total} done)")

    def check_ends(self) -> None:
        """Count the running check as done, and remove the progress from the screen."""
        self._done += 1
        self._show("")

    def _show(self, text: str) -> None:
        if sys.stdout.isatty():
            left = shutil.get_terminal_size().columns - self._column() - 1
            sys.stdout.write(_SHOW.format(text=text[: max(left, 0)]))
            sys.stdout.flush()
