"""Shows progress of long work: a bar on a terminal, or else a line from time to time."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delegraph.tools.progress import Progress


@contextlib.contextmanager
def shown_progress() -> Iterator[Progress]:
    """Yield a progress function, whose bar appears after :data:`PATIENCE` on a terminal.

    Standard error shows a bar, the finished share and the remaining time while the block runs. If
    it is no terminal, it gets a line after :data:`FIRST_LINE`, and further lines ever more rarely.
    """
    shown = _Bar() if sys.stderr.isatty() else Lines()
    try:
        yield shown.show
    finally:
        shown.stop()


def with_time_left(progress: Progress) -> Progress:
    """Return a progress function that also prints the remaining time if there is no bar.

    The time before the work goes on for the first time does not count.
    """
    if sys.stderr.isatty():
        return progress
    begin = time.monotonic()
    first: float | None = None

    def tell(what: str, done: float, total: float | None) -> None:
        nonlocal first, begin
        if first is None or done == first:
            first, begin = done, time.monotonic()
        if total is not None and done > first:
            left = (time.monotonic() - begin) / (done - first) * (total - done)
            what = f"{what}, {_rough_duration(left)} left"
        progress(what, done, total)

    return tell


def _rough_duration(seconds: float) -> str:
    """Return a duration in words.

    >>> _rough_duration(4.6), _rough_duration(130), _rough_duration(7500)
    ('5 s', '2 min', '2 h 5 min')
    """
    minutes = round(seconds / 60)
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


PATIENCE = 2.0
"""Seconds before progress is shown on a terminal."""

FIRST_LINE = 20.0
"""Seconds before the first line of progress is written if standard error is no terminal."""

_RAREST_LINE = 300.0


class Lines:
    """Writes a line of progress to standard error from time to time, until :meth:`stop`.

    A thread writes the lines, because a single step of the work may take minutes.
    """

    def __init__(self, what: str = "") -> None:
        self._state: tuple[str, float, float | None] = what, 0.0, None
        self._begin = time.monotonic()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def show(self, what: str, done: float, total: float | None) -> None:
        """Note the progress of the work *what*, for the next line that is written.

        *done* and *total* have the same unit; *total* is None if it is unknown.
        """
        self._state = what, done, total

    def stop(self) -> None:
        """Stop writing lines."""
        self._is_over.set()
        self._thread.join()

    def _write(self) -> None:
        pause = FIRST_LINE
        while not self._is_over.wait(pause):
            elapsed = time.monotonic() - self._begin
            with contextlib.suppress(OSError, ValueError):  # the reader has closed the stream
                print(_line(*self._state, elapsed), file=sys.stderr, flush=True)
            pause = min(max(pause, elapsed / 5), _RAREST_LINE)


def _line(what: str, done: float, total: float | None, elapsed: float) -> str:
    """Return a line of text about the progress of some work, *elapsed* seconds after its begin.

    >>> _line("comparing", 1, 4, 30)
    'comparing: 25 %, 30 s so far'
    >>> _line("applying delegates", 0, None, 150)
    'applying delegates: 2 min 30 s so far'
    """
    share = f"{100 * done / total:.0f} %, " if total else ""
    return f"{what or 'working'}: {share}{span(elapsed)} so far"


def span(seconds: float) -> str:
    """Return a duration in whole seconds, or in minutes and seconds.

    >>> span(9.7), span(150), span(3720)
    ('10 s', '2 min 30 s', '62 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    return f"{minutes} min" + (f" {rest} s" if rest else "")


def about(seconds: float) -> str:
    """Return an estimated duration.

    >>> about(0.4), about(12.3)
    ('less than 1 s', 'about 12 s')
    """
    return "less than 1 s" if seconds < 0.95 else f"about {span(seconds)}"


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
            # Otherwise the first text would be missing.
            self._bar.update(self._task, description=what)
            self._bar.start()
            self._is_shown = True
        self._bar.update(self._task, description=what, completed=done, total=total)

    def stop(self) -> None:
        if self._is_shown:
            self._bar.stop()
