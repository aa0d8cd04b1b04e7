"""On a terminal, a long check says what it is at."""

from __future__ import annotations

import io

import pytest

from delegraph.testing import check_progress, fed, operator_case
from delegraph.testing.check_progress import CheckProgress
from delegraph.testing.conformance.run_reports import CheckBegins, ModelBegins

CASE = operator_case("NEG", [fed([1.0], "FLOAT32")], ["FLOAT32"])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, column: int = 3) -> list[str]:
    """Return the texts that a check of two models shows."""
    monkeypatch.setattr("sys.stdout", stream)
    monkeypatch.setattr(check_progress, "PAUSE", 0.0)
    monkeypatch.setenv("COLUMNS", "60")
    progress = CheckProgress(lambda: column)
    progress.check_begins(7)
    progress.hear(CheckBegins({"delegate": "mine", "check": "resize is survived"}))
    for _ in range(2):
        progress.hear(ModelBegins(CASE, ""))
    progress.check_ends()
    return [text.removesuffix("\x1b[K\x1b8") for text in stream.getvalue().split("\x1b7")[1:]]


def test_a_text_is_shown_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(Terminal(), monkeypatch) == [
        "  mine: resize is survived: model 0, 0 s (0 of 7 done)",
        "  mine: resize is survived: model 1, 0 s (0 of 7 done)",
        "  mine: resize is survived: model 2, 0 s (0 of 7 done)",
        "",
    ]


def test_a_text_ends_before_the_line_does(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(Terminal(), monkeypatch, 40)[0] == "  mine: resize is s"
    assert shown(Terminal(), monkeypatch, 70)[0] == ""


def test_nothing_is_shown_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(io.StringIO(), monkeypatch) == []
