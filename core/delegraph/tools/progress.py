"""Interface through which long work reports progress; the command line shows it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Function that is told the progress of work; it is called often and must be fast."""

    def __call__(self, what: str, done: float, total: float | None) -> object:
        """Report the progress of the work.

        Args:
            what: what is going on, in a few words.
            done: how much of it is done, in any unit.
            total: how much there is, in the same unit; None when that is unknown.
        """


def untold(what: str, done: float, total: float | None) -> None:
    """Do nothing: for work without a progress bar."""
