"""Interface by which long work reports its progress, for the command line's progress bar."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Function to which work reports its progress; it is called often, so it must be fast."""

    def __call__(self, what: str, done: float, total: float | None) -> object:
        """Report the progress of the work.

        Args:
            what: name of the present work, in a few words.
            done: finished amount of the work, in any unit.
            total: whole amount of the work in the same unit; None if unknown.
        """


def untold(what: str, done: float, total: float | None) -> None:
    """Do nothing; used as a progress function when no progress is shown."""


def part_of(progress: Progress, number: int, count: int) -> Progress:
    """Return a progress function for part *number* of *count* equal parts of some work.

    The returned function reports the progress of the whole work to *progress*.
    """

    def told(what: str, done: float, total: float | None) -> None:
        progress(what, number + (done / total if total else 0.0), count)

    return told
