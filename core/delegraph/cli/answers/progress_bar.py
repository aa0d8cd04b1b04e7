"""Progress bar for long work, shown on a terminal only."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from delegraph.cli.answers.printing import PATIENCE

if TYPE_CHECKING:
    from delegraph.tools.progress import Progress


@contextlib.contextmanager
def shown_progress() -> Iterator[Progress]:
    """Context with a progress function; its bar appears after :data:`PATIENCE` seconds.

    A bar, the share and the time left stand on standard error while the block runs.
    """
    if not sys.stderr.isatty():
        yield lambda what, done, total: None
        return
    shown = _Bar()
    try:
        yield shown.show
    finally:
        shown.stop()


class _Bar:
    """A bar that begins to show after a while."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(compact=True),
            console=Console(stderr=True),
            transient=True,
        )
        self._task: Any = self._bar.add_task("", total=None)
        self._begin = time.monotonic()
        self._is_shown = False

    def show(self, what: str, done: float, total: float | None) -> None:
        if not self._is_shown:
            if time.monotonic() - self._begin < PATIENCE:
                return
            self._bar.update(self._task, description=what)  # or it begins without words
            self._bar.start()
            self._is_shown = True
        self._bar.update(self._task, description=what, completed=done, total=total)

    def stop(self) -> None:
        if self._is_shown:
            self._bar.stop()
