from __future__ import annotations

import io

import pytest

from delegraph.cli.answers import progress_bar as module
from delegraph.cli.answers.progress_bar import shown_progress


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, error: io.StringIO, patience: float) -> str:
    """Return what stands on standard error after some work that told how far it was."""
    monkeypatch.setattr("sys.stderr", error)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(module, "PATIENCE", patience)
    with shown_progress() as progress:
        progress("warming up", 1, 4)
        progress("running", 2, 4)
    return error.getvalue()


def test_a_terminal_shows_what_goes_on_and_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, Terminal(), 0)
    assert "warming up" in text
    assert "running" in text
    assert "50%" in text


def test_short_work_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, Terminal(), 60) == ""


def test_no_terminal_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, io.StringIO(), 0) == ""
