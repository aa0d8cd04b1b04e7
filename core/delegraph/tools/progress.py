"""Progress of long work; the command line shows it on a terminal."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Interface of a function that receives progress; it is called often, so it must be fast."""

    def __call__(self, what: str, done: float, total: float | None) -> object:
        """Receive the progress.

        Args:
            what: what is going on, in a few words.
            done: how much of it is done, in any unit.
            total: how much there is, in the same unit; None when that is unknown.
        """


def untold(what: str, done: float, total: float | None) -> None:
    """Ignore the progress."""
