"""Compiling and caching: what is compiled again, what is not, and what is said about it."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from delegraph.errors import DelegateError
from delegraph_numba_cpu import building, cache, families
from delegraph_numba_cpu.blocks import Block
from delegraph_numba_cpu.cpu import LEVELS, CpuLevel, supported_levels
from delegraph_numba_cpu.kernel_library import Library, library
from delegraph_numba_cpu.kernels import registry
from delegraph_numba_cpu.objects import read_objects, write_objects

LEVEL = supported_levels()[0]

WARM = """
from delegraph_numba_cpu.cpu import supported_levels
from delegraph_numba_cpu.kernel_library import library
library(supported_levels()[0]).load([])
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and where its files for this processor will be."""
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(tmp_path / "cache"))
    cache._temporary_folder.cache_clear()
    return cache.cache_folder(LEVEL)


@pytest.fixture
def filled(folder: Path, lib: Library) -> Path:
    """A cache that holds the executor, as some process before compiled it."""
    folder.mkdir(parents=True)
    source = _session_file()
    (folder / source.name).write_bytes(source.read_bytes())
    return folder / source.name


_compiled: list[Path] = []


@pytest.fixture(autouse=True, scope="module")
def _executor_is_compiled(lib: Library) -> None:
    lib.load([])
    _compiled.append(cache.cache_folder(LEVEL) / cache.file_name("executor"))


def _session_file() -> Path:
    path = _compiled[0]
    if not path.is_file():
        pytest.skip("the cache of this session cannot be written")
    return path


def no_building(*arguments: object) -> object:
    raise AssertionError(f"compiles {arguments}")


# -- the cache -------------------------------------------------------------------------------------


def test_what_is_in_the_cache_is_not_compiled(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "build", no_building)
    made = Library(LEVEL)
    made.load([])
    assert made.address("executor", "run") > 0


def test_a_new_process_compiles_once_and_the_next_one_not_without_numba(
    folder: Path, fresh_python: Callable[..., str]
) -> None:
    fresh_python(WARM)
    files = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert [path.name for path in files] == [cache.file_name("executor")]
    out = fresh_python("import sys; " + WARM.strip() + "\nprint('numba' in sys.modules)")
    assert out == "False\n"
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == files


def test_processes_that_start_at_once_do_each_other_no_harm(folder: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", WARM]) for _ in range(3)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0]
    assert [path.name for path in folder.iterdir()] == [cache.file_name("executor")]


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "no header", "another header"])
def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.kernels"
    write_objects(path, {"a": ("symbol", b"machine code")})
    assert read_objects(path) == {"a": ("symbol", b"machine code")}
    content = bytearray(path.read_bytes())
    if damage == "flipped":
        content[-9] ^= 1
    contents = {"cut": content[:-1], "empty": b"", "no header": b"code", "another header": b"[]\n"}
    path.write_bytes(contents.get(damage, content))
    assert read_objects(path) is None


def test_a_damaged_file_is_compiled_again_with_one_warning(
    filled: Path, caplog: pytest.LogCaptureFixture
) -> None:
    filled.write_bytes(filled.read_bytes()[:-10])
    with caplog.at_level(logging.WARNING):
        Library(LEVEL).load([])
    [record] = caplog.records
    assert "is damaged; its kernels are compiled again" in record.getMessage()
    assert read_objects(filled) is not None


def test_a_full_cache_that_is_read_only_is_used(
    filled: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    os.utime(filled, (0, 0))
    monkeypatch.setattr(building, "build", no_building)
    monkeypatch.setattr(os, "utime", _refuse)
    Library(LEVEL).load([])
    assert caplog.records == []


def _refuse(*arguments: object, **keywords: object) -> None:
    raise PermissionError("read-only")


def test_a_cache_that_cannot_be_written_is_replaced_with_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    occupied = tmp_path / "occupied"
    occupied.write_text("a file where the folder should be")
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(occupied))
    cache._temporary_folder.cache_clear()
    with caplog.at_level(logging.WARNING):
        first, second = cache.writable_folder(LEVEL), cache.writable_folder(LEVEL)
    assert first == second
    assert first.is_dir()
    [record] = caplog.records
    assert "kernels are compiled for this process only" in record.getMessage()
    assert f"{cache.CACHE_VARIABLE}=FOLDER names another" in record.getMessage()


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are another matter there")
def test_files_may_be_read_by_those_whom_the_user_lets_read(tmp_path: Path) -> None:
    path = tmp_path / "a.kernels"
    write_objects(path, {"a": ("symbol", b"code")})
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~_umask()


def _umask() -> int:
    present = os.umask(0)
    os.umask(present)
    return present


def test_what_nobody_uses_is_removed_after_a_month(folder: Path) -> None:
    old, new = folder.with_name("avx2-0123456789abcdef"), folder
    for place in (old, new):
        place.mkdir(parents=True)
        (place / "moves-1.kernels").write_bytes(b"")
    (new / "moves-2.kernels").write_bytes(b"")
    long_ago = time.time() - cache.KEPT - 60
    for place in (old, new):
        os.utime(place / "moves-1.kernels", (long_ago, long_ago))
    cache.remove_unused()
    assert not old.exists()
    assert [path.name for path in new.iterdir()] == ["moves-2.kernels"]


def test_use_keeps_a_file_from_being_removed(filled: Path) -> None:
    long_ago = time.time() - cache.KEPT - 60
    os.utime(filled, (long_ago, long_ago))
    assert cache.cached("executor", LEVEL) is not None
    cache.remove_unused()
    assert filled.is_file()


# -- what a file depends on ------------------------------------------------------------------------


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package's sources, to be edited."""
    root = tmp_path / "package"
    for path in families.ROOT.rglob("*.py"):
        copy = root / path.relative_to(families.ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    monkeypatch.setattr(families, "ROOT", root)
    _forget_sources()
    yield root
    monkeypatch.undo()
    _forget_sources()


def _forget_sources() -> None:
    for known in (families._imported, families._source, families._path):
        known.cache_clear()


@pytest.mark.parametrize(
    "edited",
    ["kernels/moves.py", "kernels/machine.py", "blocks/moves.py", "blocks/__init__.py", "cpu.py"],
)
def test_an_edit_of_what_a_family_imports_changes_its_digest(sources: Path, edited: str) -> None:
    before = families.source_digest("moves")
    with (sources / edited).open("a") as file:
        file.write("# edited\n")
    _forget_sources()
    assert families.source_digest("moves") != before


def test_an_edit_of_another_family_does_not(sources: Path) -> None:
    before = families.source_digest("moves")
    (sources / "kernels" / "executor.py").write_text("")
    _forget_sources()
    assert families.source_digest("moves") == before


def test_every_family_has_kernels_and_every_block_its_family() -> None:
    assert "executor" in families.families()
    for family in families.families():
        assert (families.ROOT / "kernels" / f"{family}.py").is_file(), family


@pytest.mark.parametrize("what", ["numba", "llvmlite", "name", "features"])
def test_compilers_and_processor_are_part_of_the_folder(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = cache.cache_folder(LEVEL)
    cache._environment_digest.cache_clear()
    if what == "numba":
        monkeypatch.setattr(cache, "_numba_version", lambda: "another")
    elif what == "llvmlite":
        monkeypatch.setattr(cache.llvmlite, "__version__", "another")
    elif what == "name":
        monkeypatch.setattr(cache.llvm, "get_host_cpu_name", lambda: "another")
    else:
        monkeypatch.setattr(cache.llvm, "get_host_cpu_features", lambda: {"sse2": True})
    after = cache.cache_folder(LEVEL)
    monkeypatch.undo()
    cache._environment_digest.cache_clear()
    assert after != before
    assert cache.cache_folder(LEVEL) == before


def test_kernels_of_two_families_may_have_the_same_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "KERNELS", {})
    first = registry.kernel(Block("same", "one", "x y"))(lambda block, tile, worker: None)
    second = registry.kernel(Block("same", "two", "x y"))(lambda block, tile, worker: None)
    assert {"one": {"same": first}, "two": {"same": second}} == registry.KERNELS


# -- compiling -------------------------------------------------------------------------------------


def test_progress_is_told(folder: Path) -> None:
    told: list[tuple[int, int, str]] = []
    building.build(["executor"], LEVEL, lambda *words: told.append(words))
    assert told == [(0, 1, ""), (1, 1, "executor")]


def test_a_family_that_cannot_be_compiled_is_an_error_that_says_what_to_do(folder: Path) -> None:
    with pytest.raises(DelegateError, match=r"'nonsense' cannot be compiled for .*nonsense"):
        building.build(["nonsense", "executor"], LEVEL)
    if LEVEL.name != "generic":
        with pytest.raises(DelegateError, match="option cpu=generic needs no special"):
            building.build(["nonsense"], LEVEL)
    with pytest.raises(DelegateError, match="please report this"):
        building.build(["nonsense"], LEVELS["generic"])


def test_an_abort_of_llvm_is_an_error_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import os, sys; print('LLVM ERROR: Cannot select', file=sys.stderr); os.abort()"
    monkeypatch.setattr(building, "_PROGRAM", program)
    with pytest.raises(DelegateError, match=r"cannot be compiled .* LLVM ERROR: Cannot select$"):
        building.build(["executor"], LEVEL)


def test_neither_settings_for_numba_nor_the_present_folder_have_a_say(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    (tmp_path / "numba.py").write_text("raise OSError('not this one')")
    monkeypatch.chdir(tmp_path)
    assert building.build(["executor"], LEVEL)["executor"]


def test_a_python_that_does_not_know_where_it_is_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(DelegateError, match="delegraph numba warmup"):
        building.build(["executor"], LEVEL)


@pytest.mark.parametrize("level", supported_levels(), ids=lambda level: level.name)
def test_every_level_of_this_processor_runs(level: CpuLevel) -> None:
    assert library(level) is library(level)
    library(level).load([])
    assert library(level).level == level
