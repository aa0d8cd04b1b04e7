"""Compiling and caching: what is compiled again, what is not, and what is said about it."""

from __future__ import annotations

import errno
import logging
import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from delegraph.delegation.cache_files import CacheFolder
from delegraph.errors import DelegateError
from delegraph_numba_cpu import building, cache, families, kernel_library, objects
from delegraph_numba_cpu.blocks import Block
from delegraph_numba_cpu.cpu import LEVELS, CpuLevel, supported_levels
from delegraph_numba_cpu.kernel_library import Library, library
from delegraph_numba_cpu.kernels import registry
from delegraph_numba_cpu.objects import pack, unpack

LEVEL = supported_levels()[0]
PLACE = cache.place_of("executor", LEVEL)
EXECUTOR = Path(PLACE).name

posix = pytest.mark.skipif(sys.platform == "win32", reason="permissions are another matter there")

WARM = """
from delegraph_numba_cpu.cpu import supported_levels
from delegraph_numba_cpu.kernel_library import library
library(supported_levels()[0]).load([])
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and where its files for this processor will be."""
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_warned", set())
    return cache.cache_folder(LEVEL)


@pytest.fixture
def filled(folder: Path, lib: Library) -> Path:
    """A cache that holds the executor, as some process before compiled it."""
    source = _session_file()
    copy = folder / source.name
    CacheFolder(folder).write(copy.name, source.read_bytes())
    return copy


_compiled: list[Path] = []


@pytest.fixture(autouse=True, scope="module")
def _executor_is_compiled(lib: Library) -> None:
    lib.load([])
    _compiled.append(cache.cache_folder(LEVEL) / EXECUTOR)


def _session_file() -> Path:
    path = _compiled[0]
    if not path.is_file():
        pytest.skip("the cache of this session cannot be written")
    return path


def session_objects() -> objects.Objects:
    """The executor, as this session compiled it."""
    found = unpack(_session_file().read_bytes(), PLACE)
    assert found is not None
    return found


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
    assert [path.name for path in files] == [EXECUTOR]
    out = fresh_python("import sys; " + WARM.strip() + "\nprint('numba' in sys.modules)")
    assert out == "False\n"
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == files


def test_processes_that_start_at_once_do_each_other_no_harm(folder: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", WARM]) for _ in range(3)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0]
    assert [path.name for path in folder.iterdir()] == [EXECUTOR]


def test_no_changed_bit_of_the_header_goes_unnoticed() -> None:
    packed = pack({"a": ("symbol", b"machine code"), "b": ("other", b"more")}, "here")
    assert unpack(packed, "here") == {"a": ("symbol", b"machine code"), "b": ("other", b"more")}
    for bit in range(8 * len(packed)):
        changed = bytearray(packed)
        changed[bit // 8] ^= 1 << bit % 8
        assert unpack(bytes(changed), "here") is None, bit


def test_no_change_of_a_real_file_goes_unnoticed(filled: Path) -> None:
    packed = filled.read_bytes()
    assert unpack(packed, PLACE) is not None
    end_of_header = packed.index(b"\n", 32) + 1
    step = len(packed) // 200
    for place in (*range(end_of_header), *range(end_of_header, len(packed), step)):
        for value in (packed[place] ^ 1, packed[place] ^ 255):
            changed = packed[:place] + bytes([value]) + packed[place + 1 :]
            assert unpack(changed, PLACE) is None, place
    for shorter in (0, 1, 31, 32, 33, end_of_header, len(packed) - 1):
        assert unpack(packed[:shorter], PLACE) is None
    assert unpack(packed + b"\0", PLACE) is None


@pytest.mark.parametrize(
    "content",
    [
        b'[["a", "symbol", 5]]\ncode',
        b'[["a", "symbol", 3]]\ncode',
        b'[["a", "symbol", 1000000000000]]\ncode',
        b'[["a", "symbol", -4], ["b", "symbol", 8]]\ncode',
        b'[["a", "symbol", 4.0]]\ncode',
        b'[["a", "symbol", true], ["b", "symbol", 3]]\ncode',
        b'[["a", "symbol", 0], ["b", "symbol", 4]]\ncode',
        b'[["a", "", 4]]\ncode',
        b'[["a", 4]]\ncode',
        b'[[["a"], "symbol", 4]]\ncode',
        b'["abc"]\ncode',
        b'{"abc": 1}\ncode',
        b"4\ncode",
        b"[]\ncode",
        b"[]\n",
        b'[["a", "symbol", 54]]+',
        b"code",
        b"\xff\ncode",
        b"[" * 100_000,
    ],
)
def test_sizes_are_checked_even_where_the_checksum_is_right(content: bytes) -> None:
    assert unpack(objects._checksum(content, "here") + content, "here") is None


def test_a_file_that_was_moved_from_elsewhere_is_as_good_as_none() -> None:
    assert unpack(pack({"a": ("symbol", b"code")}, "avx2/a"), "generic/a") is None


@pytest.mark.parametrize("place", [0, 33, 40, -10])
def test_a_damaged_file_is_compiled_again_with_one_warning(
    filled: Path, caplog: pytest.LogCaptureFixture, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "build", lambda families, *_: {"executor": session_objects()})
    content = bytearray(filled.read_bytes())
    content[place] ^= 1
    filled.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        Library(LEVEL).load([])
    [record] = caplog.records
    assert "is damaged; its kernels are compiled again" in record.getMessage()


def test_kernels_without_code_are_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    renamed = {name: (name + "?", code) for name, (_, code) in session_objects().items()}
    monkeypatch.setattr(kernel_library, "cached", lambda family, level: renamed)
    with pytest.raises(DelegateError, match="have no code"):
        Library(LEVEL).load([])


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


# -- a cache that cannot be used -------------------------------------------------------------------


def warned(caplog: pytest.LogCaptureFixture) -> str:
    """The one warning that there was."""
    [record] = caplog.records
    text = record.getMessage()
    assert "kernels are compiled for this process only" in text
    assert f"{cache.CACHE_VARIABLE}=FOLDER names another cache" in text
    return text


def load_and_compile(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> str:
    """Load the executor, twice, which must compile it; return the one warning."""
    compiled = session_objects()
    asked: list[object] = []

    def compile_again(families: list[str], level: CpuLevel, progress: object) -> object:
        asked.append(families)
        cache.keep("executor", level, compiled)
        return {"executor": compiled}

    monkeypatch.setattr(building, "build", compile_again)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert Library(LEVEL).address("executor", "run") > 0
    assert asked[0] == ["executor"]
    return warned(caplog)


@posix
@pytest.mark.parametrize("what", ["cache", "level"])
def test_a_cache_that_others_may_write_is_neither_read_nor_written(
    filled: Path, what: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = {"cache": filled.parent.parent, "level": filled.parent}[what]
    before = filled.stat()
    place.chmod(0o777)
    text = load_and_compile(caplog, monkeypatch)
    assert f"{place} may be written by others; 'chmod go-w {place}' ends that" in text
    assert filled.stat() == before


@posix
def test_a_file_that_others_may_write_is_not_read_but_replaced(
    filled: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.chmod(0o666)
    assert "may be written by others" in load_and_compile(caplog, monkeypatch)
    assert stat.S_IMODE(filled.stat().st_mode) & 0o022 == 0


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can")
def test_root_does_not_run_what_nobody_wrote(
    filled: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in (filled, filled.parent, filled.parent.parent):
        os.chown(place, 65534, 65534)
    assert "belongs to user " in load_and_compile(caplog, monkeypatch)


def test_a_file_in_the_folders_place_costs_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    occupied = tmp_path / "occupied"
    occupied.write_text("a file")
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(occupied))
    monkeypatch.setattr(cache, "_warned", set())
    assert str(occupied) in load_and_compile(caplog, monkeypatch)
    assert occupied.read_text() == "a file"


def test_a_folder_in_the_files_place_costs_a_warning(
    filled: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.unlink()
    filled.mkdir()
    assert str(filled) in load_and_compile(caplog, monkeypatch)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT])
def test_a_disk_that_refuses_costs_a_warning(
    folder: Path,
    number: int,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    true_open = os.open

    def refuse(path: object, flags: int, *mode: int, **more: int) -> int:
        if flags & os.O_CREAT and str(folder) in str(path):
            raise OSError(number, os.strerror(number), str(path))
        return true_open(path, flags, *mode, **more)

    monkeypatch.setattr(os, "open", refuse)
    assert os.strerror(number) in load_and_compile(caplog, monkeypatch)


def test_kernels_are_compiled_where_nothing_can_be_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("a file")
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(tmp_path / "file"))
    monkeypatch.setattr(cache, "_warned", set())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with caplog.at_level(logging.WARNING):
        assert building.build(["executor"], LEVEL)["executor"]
    warned(caplog)


# -- what is removed -------------------------------------------------------------------------------


def aged(path: Path, seconds: float) -> Path:
    """Make a file that was last used that long ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    then = time.time() - seconds
    os.utime(path, (then, then))
    return path


def test_what_nobody_uses_is_removed_after_a_month(folder: Path) -> None:
    old, month = folder.with_name("avx2-0123456789abcdef"), cache.KEPT + 60
    aged(old / EXECUTOR, month)
    aged(folder / EXECUTOR, month)
    kept = aged(folder / EXECUTOR.replace("executor", "moves"), month - 120)
    cache.remove_unused()
    assert not old.exists()
    assert list(folder.iterdir()) == [kept]


def test_half_written_files_are_removed_after_a_day(folder: Path) -> None:
    aged(folder / f"{EXECUTOR}.0123abcd.unfinished", cache.DAY + 60)
    kept = aged(folder / f"{EXECUTOR}.4567abcd.unfinished", cache.DAY - 60)
    cache.remove_unused()
    assert list(folder.iterdir()) == [kept]


def test_nothing_but_kernels_is_ever_removed(folder: Path, tmp_path: Path) -> None:
    month = cache.KEPT + 60
    mine = [
        aged(folder.parent / "my-thesis" / EXECUTOR, month),
        aged(folder.parent / EXECUTOR, month),
        aged(folder / "thesis.tex", month),
        aged(tmp_path / "elsewhere" / EXECUTOR, month),
    ]
    folder.with_name("avx2-0123456789abcdef").symlink_to(tmp_path / "elsewhere")
    cache.remove_unused()
    assert [path.exists() for path in mine] == [True] * 4


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
