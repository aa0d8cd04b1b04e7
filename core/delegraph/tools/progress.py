"""How long work tells how far it is; the command line shows it on a terminal."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Is told how far work is; called often, so it does little."""

    def __call__(self, what: str, done: float, total: float | None) -> object:
        """Take note.

        Args:
            what: what is going on, in a few words.
            done: how much of it is done, in any unit.
            total: how much there is, in the same unit; None when that is unknown.
        """


def untold(what: str, done: float, total: float | None) -> None:
    """Do nothing."""
