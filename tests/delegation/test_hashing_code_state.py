"""What says that code may have changed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from delegraph.delegation import code_state
from delegraph.delegation.hashing import edited_state, files_state, package_state


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


def defined_in(
    file: Path, monkeypatch: pytest.MonkeyPatch, name: str = "fake_chip", part: str = ".delegate"
) -> type:
    """Return a class of a module that was imported from a file, or of a part of it."""
    module = ModuleType(name)
    module.__file__ = str(file)
    monkeypatch.setitem(sys.modules, name, module)
    return type("Chip", (), {"__module__": name + part})


@pytest.mark.parametrize(
    ("path", "is_edited"),
    [
        ("src/fake_chip/__init__.py", True),
        ("fake_chip.py", True),
        ("site-packages/fake_chip/__init__.py", False),
        ("site-packages/fake_chip.py", False),
        ("wheel/fake_chip/__init__.py", False),
    ],
)
def test_edits_count_outside_of_installed_wheels(
    path: str, is_edited: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    record = tmp_path / "wheel" / "fake_chip-1.0.dist-info" / "RECORD"
    record.parent.mkdir(parents=True)
    record.touch()
    states = []
    for text in ("x = 1", "x = 10"):
        file.write_text(text, encoding="utf-8")
        package_state.cache_clear()  # as in a new process
        states.append(edited_state(defined_in(file, monkeypatch)))
    assert (states[0] != states[1], "" in states) == (is_edited, not is_edited)


def test_a_delegate_file_counts_each_time_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "chip.py"
    states = set()
    for text in ("x = 1", "x = 2"):
        file.write_text(text, encoding="utf-8")
        states.add(edited_state(defined_in(file, monkeypatch, f"delegate_file:{file}", part="")))
    assert len(states - {""}) == 2


def test_a_class_without_a_file_has_no_state() -> None:
    assert edited_state(type("Chip", (), {"__module__": "of_a_notebook"})) == ""
