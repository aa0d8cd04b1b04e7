"""Progress of long work, shown on a terminal only."""

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
    """Yield a progress function, whose bar appears after :data:`PATIENCE` on a terminal.

    Standard error shows a bar, the finished share and the remaining time while the block runs.
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
    """A progress bar that appears after some time."""

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
            self._bar.update(self._task, description=what)  # otherwise it begins without words
            self._bar.start()
            self._is_shown = True
        self._bar.update(self._task, description=what, completed=done, total=total)

    def stop(self) -> None:
        if self._is_shown:
            self._bar.stop()
