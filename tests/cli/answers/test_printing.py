from __future__ import annotations

import io
import json
import math
import sys
import time

import pytest
from rich.console import Console

from delegraph.cli.answers import printing
from delegraph.cli.answers.table_layout import shortened
from support.command import Terminal


def test_names_are_not_taken_for_markup(capsys: pytest.CaptureFixture[str]) -> None:
    out = printing.console()
    printing.heading(out, "a[bold]b :smile:")
    printing.print_table(out, ("x",), [("[red]y[/red]",)])
    assert capsys.readouterr().out.split() == ["a[bold]b", ":smile:", "x", "[red]y[/red]"]


def test_a_table_without_rows_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    printing.print_table(printing.console(), ("x",), [])
    assert capsys.readouterr().out == ""


SENTENCE = "5 nodes: sin takes 2 in 2 partitions, 3 stay with Delegraph's kernels"


def test_a_sentence_that_is_too_long_hangs() -> None:
    file = Terminal()
    out = Console(file=file, width=40, force_terminal=True, color_system=None)
    printing.print_paragraph(out, SENTENCE)
    printing.print_paragraph(out, "short")
    assert [line.rstrip() for line in file.getvalue().splitlines()] == [
        "  5 nodes: sin takes 2 in 2 partitions,",
        "    3 stay with Delegraph's kernels",
        "  short",
    ]


def test_a_number_and_its_unit_stay_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "22")
    out = printing.console()
    out.print("that folder holds 1.5 MB")
    printing.print_table(out, ("folder", "state"), [("compiled", "held 12733 files, 1.5 MB")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["that folder holds", "  1.5 MB"]
    assert lines[-1].strip() == "1.5 MB"


def test_an_operator_and_its_count_stay_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "33")
    rows = [("CONV_2D x3, DEPTHWISE_CONV_2D x14",)]
    printing.print_table(printing.console(), ("operators",), rows)
    lines = capsys.readouterr().out.splitlines()
    assert [line.strip() for line in lines[1:]] == ["CONV_2D x3,", "DEPTHWISE_CONV_2D x14"]


def test_a_shape_stays_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "34")
    rows = [("[1, 300, 300, 3]", "what a model takes as its input")]
    printing.print_table(printing.console(), ("shape", "meaning"), rows)
    assert capsys.readouterr().out.splitlines()[1].startswith("  [1, 300, 300, 3]  ")


def test_printed_lines_hang_from_where_they_start(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    out = printing.console()
    out.print(f"   {SENTENCE}")
    out.print(SENTENCE, soft_wrap=True)
    assert capsys.readouterr().out.splitlines() == [
        "   5 nodes: sin takes 2 in 2 partitions,",
        "     3 stay with Delegraph's kernels",
        SENTENCE,
    ]


def test_a_table_on_a_terminal_fits_its_width() -> None:
    terminal = Terminal()
    out = Console(file=terminal, width=20, force_terminal=True, color_system=None)
    printing.print_table(out, ("name",), [("word " * 20,)])
    assert max(map(len, terminal.getvalue().splitlines())) <= 20


def test_rows_that_are_too_long_for_a_line_become_lines() -> None:
    terminal = Terminal()
    out = Console(file=terminal, width=20, force_terminal=True, color_system=None)
    columns = ("name", "mean", "max")
    rows = [("a", "1.25e-07", "9.5e-07"), ("b", "1.25e-06", "9.5e-06")]
    printing.print_table(out, columns, rows, right=columns[1:])
    assert [line.split() for line in terminal.getvalue().splitlines()] == [
        ["name", "a"], ["mean", "1.25e-07"], ["max", "9.5e-07"], [],
        ["name", "b"], ["mean", "1.25e-06"], ["max", "9.5e-06"],
    ]  # fmt: skip


@pytest.mark.parametrize(("width", "length"), [(30, 16), (60, 44), (78, 60), (200, 60)])
def test_long_names_are_shortened_to_what_the_width_leaves(width: int, length: int) -> None:
    terminal = Terminal()
    out = Console(file=terminal, width=width, force_terminal=True, color_system=None)
    name = "first/" + "middle/" * 20 + "last"
    printing.print_table(out, ("tensor", "name", "kind"), [(1, name, "x"), (2, "short", "y")])
    row = terminal.getvalue().splitlines()[1].split()
    assert row == ["1", shortened(name, length), "x"]
    assert (len(row[1]), row[1][:5], row[1][-4:]) == (length, "first", "last")


def test_json_has_null_for_what_it_cannot_hold(capsys: pytest.CaptureFixture[str]) -> None:
    printing.print_json({"a": math.nan, "b": [math.inf, 1.5], "c": ("\u00e9",)})
    assert "".join(capsys.readouterr().out.split()) == '{"a":null,"b":[null,1.5],"c":["\u00e9"]}'


def test_json_has_numbers_on_one_line_and_texts_as_they_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    value = {"a": [1, -2.5e-07, None], "b": ["[\n  1\n]"], "c": [[1, 2], []]}
    printing.print_json(value)
    printed = capsys.readouterr().out
    assert json.loads(printed) == value
    assert '"a": [1, -2.5e-07, null],' in printed
    assert "    [1, 2],\n" in printed


def test_progress_shows_on_a_terminal_once_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(printing, "PATIENCE", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    with printing.progress("counting"):
        end = time.monotonic() + 10
        while "counting" not in terminal.getvalue() and time.monotonic() < end:
            pass
    assert "counting" in terminal.getvalue()


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()], ids=["terminal", "pipe"])
def test_progress_is_silent_when_quick_or_no_terminal(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    with printing.progress("counting"):
        pass
    assert stream.getvalue() == ""


def test_a_long_path_is_broken_between_folders(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    path = "/folder/of-someone/with-projects"
    printing.print_facts(printing.console(), [("package", path)], indent=0)
    found = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert found == ["package  /folder/", "of-someone/", "with-projects"]
    printing.print_paragraph(printing.console(), f"it is {path}", indent=0)
    found = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert found == ["it is", "/folder/of-someone/", "with-projects"]
