"""Running the command in a test's own process."""

from __future__ import annotations

import os
import sys

import pytest

from delegraph.testing import run_command
from delegraph.testing.command import WIDTH


def test_result_holds_the_exit_code_and_both_outputs() -> None:
    result = run_command("plugins", "list", "--json")
    assert (result.code, result.err) == (0, "")
    assert isinstance(result.json, dict | list)
    refused = run_command("no-such-command")
    assert (refused.code, refused.out) == (2, "")
    assert "no-such-command" in refused.err


def test_lines_have_runs_of_blanks_as_one() -> None:
    result = run_command("plugins", "list")
    assert "  " in result.out
    assert not any("  " in line for line in result.lines)


@pytest.mark.parametrize("columns", ["20", "400", None])
def test_output_does_not_depend_on_the_terminal(
    columns: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run_command("run", "--help").out
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", columns)
    assert run_command("run", "--help").out == expected
    assert max(map(len, expected.splitlines())) <= WIDTH


def test_streams_and_environment_are_as_before() -> None:
    before = (sys.stdout, sys.stderr, dict(os.environ))
    run_command("--version")
    assert (sys.stdout, sys.stderr, dict(os.environ)) == before
