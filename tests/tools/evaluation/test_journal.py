from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from delegraph.errors import ArgumentError
from delegraph.tools.evaluation.journal import Journal

IDENTITY = {"set-up 1": {"model": "ab"}, "task": {"name": "t"}, "samples": {"count": 2}}


def entry(key: str, **values: Any) -> dict[str, Any]:
    return {"key": key, "rows": [{"rank": 1}], **values}


def journal(path: Path, **changes: Any) -> Journal:
    return Journal(str(path), {**IDENTITY, **changes})


def test_what_was_added_is_there_again(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = journal(path)
    assert first.entries == {}
    first.add(entry("a"))
    first.add(entry("b", score=0.1))
    first.close()
    again = journal(path)
    assert again.entries == {"a": entry("a"), "b": entry("b", score=0.1)}
    again.close()


@pytest.mark.parametrize("left", range(1, 30))
def test_a_last_line_cut_anywhere_is_dropped_and_the_rest_goes_on(
    tmp_path: Path, left: int
) -> None:
    path = tmp_path / "journal"
    first = journal(path)
    first.add(entry("a"))
    first.close()
    whole = path.read_bytes()
    path.write_bytes(whole + json.dumps(entry("b")).encode()[:left])
    second = journal(path)
    assert set(second.entries) == {"a"}
    second.add(entry("b"))
    second.close()
    assert path.read_bytes() == whole + json.dumps(entry("b")).encode() + b"\n"


@pytest.mark.parametrize("rest", [b"", b'{"format": 2'])
def test_a_file_without_a_whole_first_line_begins_anew(tmp_path: Path, rest: bytes) -> None:
    path = tmp_path / "journal"
    path.write_bytes(rest)
    opened = journal(path)
    opened.close()
    assert opened.entries == {}
    assert json.loads(path.read_bytes()) == {"format": 2, **IDENTITY}


def test_another_evaluation_is_refused_and_what_differs_is_named(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal(path).close()
    with pytest.raises(ArgumentError, match=r"same set-up 1 \(model: 'ab', now 'cd'\), task"):
        journal(path, **{"task": {"name": "u"}, "set-up 1": {"model": "cd"}})
    with pytest.raises(ArgumentError, match="not the same set-up 2"):
        journal(path, **{"set-up 2": {"model": "cd"}})


def test_damage_before_the_last_line_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = journal(path)
    first.add(entry("a"))
    first.add(entry("b"))
    first.close()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b'{"key": "a", "ro\n' + lines[2])
    with pytest.raises(ArgumentError, match="is damaged in line 2: delete it to begin anew"):
        journal(path)


@pytest.mark.parametrize("notes", ["my notes\nof today\n", "my notes", '{"key": "a"}\n', "[]\n"])
def test_a_file_that_is_no_journal_is_refused_and_left_alone(tmp_path: Path, notes: str) -> None:
    path = tmp_path / "notes"
    path.write_text(notes)
    with pytest.raises(ArgumentError, match="is no journal of an evaluation: name another"):
        journal(path)
    assert path.read_text() == notes


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"journal '.*': No such file or directory"):
        journal(tmp_path / "missing" / "journal")


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such lock")
def test_two_processes_do_not_write_one_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = journal(path)
    with pytest.raises(ArgumentError, match="is in use by another process"):
        journal(path)
    first.close()
    journal(path).close()
