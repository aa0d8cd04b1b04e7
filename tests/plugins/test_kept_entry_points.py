"""The list of entry points that is kept, and when it is made anew."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from delegraph.plugins.kept_entry_points import DeclaredPlugin, PathState

FOUND = [DeclaredPlugin("one", "package.plugin", "dist-one", "1.0")]
LONG_AGO = 1_000_000_000


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole path of Python, with a cache folder of its own beside it."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder)])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    install(folder, "one-1.0.dist-info")
    return folder


def install(site: Path, name: str, when: int = LONG_AGO) -> Path:
    """Write a distribution's description as if at a time in the past."""
    folder = site / name
    folder.mkdir(exist_ok=True)
    text = "[delegraph.plugins]\none = package.plugin\n"
    (folder / "entry_points.txt").write_text(text, encoding="utf-8")
    for path in (folder / "entry_points.txt", folder):
        os.utime(path, (when, when))
    return folder


def kept_file(site: Path) -> Path:
    (file,) = (site.parent / "cache" / "delegraph" / "plugins").iterdir()
    return file


def test_what_was_found_is_kept(site: Path) -> None:
    assert PathState().kept() is None
    PathState().keep(FOUND)
    assert PathState().kept() == FOUND


def test_a_folder_that_programs_write_to_changes_nothing(site: Path) -> None:
    PathState().keep(FOUND)
    (site / "results.txt").write_text("new", encoding="utf-8")
    assert PathState().kept() == FOUND


def test_a_folder_of_scripts_makes_no_difference(site: Path) -> None:
    PathState().keep(FOUND)
    sys.path.insert(0, str(site.parent))
    assert PathState().kept() == FOUND


@pytest.mark.parametrize(
    "change",
    [
        lambda site: install(site, "two-1.0.dist-info"),
        lambda site: install(site, "one-1.0.dist-info", when=LONG_AGO + 1),
        lambda site: (site / "one-1.0.dist-info").rename(site / "one-1.1.dist-info"),
        lambda site: os.utime(site / "old.egg-info" / "entry_points.txt", (LONG_AGO, LONG_AGO + 1)),
        lambda site: sys.path.append(str(site)),
    ],
    ids=["installed", "installed again", "another version", "changed in place", "another path"],
)
def test_a_change_of_what_is_installed_shows(site: Path, change: Callable[[Path], object]) -> None:
    install(site, "old.egg-info")
    PathState().keep(FOUND)
    change(site)
    assert PathState().kept() is None


def test_nothing_is_kept_of_what_has_only_just_changed(site: Path) -> None:
    os.utime(site / "one-1.0.dist-info")
    PathState().keep(FOUND)
    assert not (site.parent / "cache").exists()


def test_a_damaged_file_is_as_good_as_none(site: Path) -> None:
    PathState().keep(FOUND)
    file, rng = kept_file(site), random.Random(0)
    whole = file.read_bytes()
    for _ in range(300):
        damaged = bytearray(whole)
        del damaged[rng.randrange(len(damaged)) :]
        file.write_bytes(bytes(damaged))
        assert PathState().kept() is None
    for content in (b"", b"\xff\xfe", whole.replace(b"\t", b" "), whole + b"more\n"):
        file.write_bytes(content)
        assert PathState().kept() is None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="access rights of POSIX")
def test_a_file_that_others_may_write_is_not_used(site: Path) -> None:
    PathState().keep(FOUND)
    kept_file(site).chmod(0o666)
    assert PathState().kept() is None


def test_a_cache_that_cannot_be_written_costs_nothing(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(site / "one-1.0.dist-info" / "entry_points.txt"))
    PathState().keep(FOUND)
    assert PathState().kept() is None


def test_the_second_process_does_not_look_at_every_distribution(tmp_path: Path) -> None:
    code = (
        "import sys; from delegraph.plugins.discovery import installed_entry_points as found; "
        "print(found()); print('importlib_metadata' in sys.modules)"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}

    def run() -> list[str]:
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    first, second = run(), run()
    assert first[0] == second[0]
    assert (first[1], second[1]) == ("True", "False")


@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use cannot be removed there")
def test_a_working_folder_that_was_removed_only_keeps_nothing(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = site / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    monkeypatch.setattr(sys, "path", ["", str(site)])
    gone.rmdir()
    state = PathState()
    state.keep(FOUND)
    assert (state.text, state.kept()) == ("", None)
