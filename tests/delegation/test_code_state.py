"""What says that code may have changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from delegraph.delegation import code_state
from delegraph.delegation.code_state import files_state


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "my_package"
    for name in ("a/one.py", "b/two.py", "b/__pycache__/two.py", "b/notes.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


@pytest.mark.parametrize(
    ("name", "is_seen"),
    [("b/two.py", True), ("b/new.py", True), ("b/__pycache__/two.py", False), ("a/one.py", False)],
)
def test_edited_files_change_the_state_of_their_folder(
    package: Path, name: str, is_seen: bool
) -> None:
    before = files_state([str(package / "b")])
    (package / name).write_text("x = 1", encoding="utf-8")
    assert (files_state([str(package / "b")]) != before) is is_seen


def test_an_installation_stands_for_the_files_it_wrote(package: Path) -> None:
    record = package.parent / "my_package-1.0.dist-info" / "RECORD"
    record.parent.mkdir()
    record.write_text("first", encoding="utf-8")
    os.utime(record, (1, 1))
    assert code_state(str(package), ("a",)) == repr((record.parent.name, 5, 10**9))
    assert code_state(str(package), ("a",), is_edited=True) == files_state([str(package / "a")])


def test_an_archive_has_no_state(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        code_state(str(tmp_path / "archive.zip" / "my_package"))
