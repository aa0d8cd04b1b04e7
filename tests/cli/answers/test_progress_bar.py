from __future__ import annotations

import io
import threading

import pytest

from delegraph.cli.answers import printing
from delegraph.cli.answers import progress_bar as module
from delegraph.cli.answers.progress_bar import shown_progress, with_time_left
from support.command import Terminal


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


def test_short_work_writes_no_line_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert shown(monkeypatch, io.StringIO(), 0) == ""


class Written(io.StringIO):
    """Standard error that is a file, and says when something is written."""

    def __init__(self) -> None:
        super().__init__()
        self.has_text = threading.Event()

    def flush(self) -> None:
        self.has_text.set()


@pytest.mark.parametrize("text", ["comparing: 50 %, 0 s so far\n", "loading: 0 s so far\n"])
def test_long_work_writes_a_line_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    error = Written()
    monkeypatch.setattr("sys.stderr", error)
    monkeypatch.setattr(module, "FIRST_LINE", 0.1)
    what = text.partition(":")[0]
    if what == "loading":
        with printing.progress(what):
            assert error.has_text.wait(9)
    else:
        with shown_progress() as progress:
            progress(what, 2, 4)
            assert error.has_text.wait(9)
    assert error.getvalue().startswith(text)


def test_the_time_that_is_left_is_told_where_no_bar_shows_it() -> None:
    told: list[str] = []
    progress = with_time_left(lambda what, done, total: told.append(what))
    for done in (5, 10):
        progress(f"{done} rows", done, 10)
    assert told == ["5 rows", "10 rows, 0 s left"]


def test_the_start_does_not_count_for_the_time_that_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter([0.0, 0.0, 100.0, 103.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    told: list[str] = []
    progress = with_time_left(lambda what, done, total: told.append(what))
    for done in (0, 0, 5):
        progress("rows", done, 10)
    assert told[-1] == "rows, 3 s left"
