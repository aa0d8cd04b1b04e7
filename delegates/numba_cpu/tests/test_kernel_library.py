"""Compiling and caching: what is compiled again, what is not, and what is said about it."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from delegated import DIGITS
from delegraph import Interpreter
from delegraph.delegation import BlobCache, blob_cache, cache_files
from delegraph.errors import DelegateError
from delegraph_numba_cpu.codegen import registry
from delegraph_numba_cpu.codegen.cpu_levels import LEVELS, CpuLevel
from delegraph_numba_cpu.codegen.object_code import pack, unpack
from delegraph_numba_cpu.instructions import Instruction
from delegraph_numba_cpu.library import building, cache, compile_processes, families, kernel_library
from delegraph_numba_cpu.library.cpu import supported_levels
from delegraph_numba_cpu.library.jit_linking import LinkedObjects
from delegraph_numba_cpu.library.kernel_library import library

LEVEL = supported_levels()[0]
EXECUTOR = cache.key_of("executor")

WARM = """
from delegraph.delegation.blob_cache import BlobCache
from delegraph_numba_cpu.library.cpu import supported_levels
from delegraph_numba_cpu.library.jit_linking import LinkedObjects
LinkedObjects(supported_levels()[0]).load(["executor"], BlobCache, None)
"""


def load() -> LinkedObjects:
    """Load the executor without a library."""
    made = LinkedObjects(LEVEL)
    made.load(["executor"], BlobCache, None)
    return made


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BlobCache:
    """An empty cache."""
    monkeypatch.setenv(blob_cache.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(blob_cache, "warned_of", set())
    return cache.kernel_cache(LEVEL)


@pytest.fixture
def filled(kept: BlobCache, executor: bytes) -> Path:
    """The file of a cache that holds the executor, as some process before compiled it."""
    return kept.put(EXECUTOR, executor)


@pytest.fixture(scope="module")
def executor() -> bytes:
    """The executor, as this session compiled it."""
    return building.build(["executor"], LEVEL, cache.kernel_cache(LEVEL))["executor"]


def no_building(*arguments: object) -> object:
    raise AssertionError(f"compiles {arguments}")


# -- the cache -------------------------------------------------------------------------------------


def test_what_is_in_the_cache_is_not_compiled(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "build", no_building)
    assert load().address("executor", "run") > 0


def test_processes_that_start_at_once_compile_once_and_the_next_one_not_without_numba(
    kept: BlobCache, tmp_path: Path, fresh_python: Callable[..., str]
) -> None:
    counted = COUNTED + WARM
    words = [sys.executable, "-c", counted, str(tmp_path / "compilers")]
    processes = [subprocess.Popen(words) for _ in range(3)]
    assert [process.wait(timeout=120) for process in processes] == [0, 0, 0]
    [entry] = kept.entries()
    assert (tmp_path / "compilers").read_text() == "x"
    written = entry.path.read_bytes()
    out = fresh_python("import sys; " + WARM.strip() + "\nprint('numba' in sys.modules)")
    assert out == "False\n"
    assert [(e.path, e.path.read_bytes()) for e in kept.entries()] == [(entry.path, written)]


COUNTED = """
import sys
from delegraph_numba_cpu.library import compile_processes
compile_family = compile_processes.Compiler.compile
def counted(self, family):
    with open(sys.argv[1], "a") as file:
        file.write("x")
    return compile_family(self, family)
compile_processes.Compiler.compile = counted
"""


def test_an_interpreter_may_have_a_cache_of_its_own(
    tmp_path: Path, executor: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_library, "opened_libraries", {})
    monkeypatch.setattr(kernel_library, "prebuilt_library", lambda level: None)
    monkeypatch.setattr(compile_processes.Compiler, "compile", lambda self, family: executor)
    with (
        Interpreter(DIGITS, delegates=["numba_cpu"], cache_dir=tmp_path) as interpreter,
        pytest.raises(DelegateError, match="have no code"),  # each is the executor
    ):
        interpreter.allocate_tensors()
    kept = cache.kernel_cache(LEVEL, lambda *names: BlobCache(*names, tmp_path))
    assert kept.read(EXECUTOR) == executor


def test_kernels_are_unpacked_as_they_were_packed() -> None:
    kernels = {"a": b"machine code", "b": b"more"}
    assert unpack(pack(kernels)) == kernels


@pytest.mark.parametrize(
    "content",
    [
        b'[["a", 5]]\ncode',
        b'[["a", 3]]\ncode',
        b'[["a", 1000000000000]]\ncode',
        b'[["a", -4], ["b", 8]]\ncode',
        b'[["a", 4.0]]\ncode',
        b'[["a", true], ["b", 3]]\ncode',
        b'[["a", 0], ["b", 4]]\ncode',
        b'[["", 4]]\ncode',
        b'[["a"]]\ncode',
        b'[[["a"], 4]]\ncode',
        b'["abc"]\ncode',
        b'{"abc": 1}\ncode',
        b"4\ncode",
        b"[]\ncode",
        b"[]\n",
        b'[["a", 54]]+',
        b"code",
        b"\xff\ncode",
        b"[" * 100_000,
    ],
)
def test_no_size_leads_outside(content: bytes) -> None:
    with pytest.raises(ValueError, match="not as they were packed"):
        unpack(content)


def test_kernels_that_were_packed_otherwise_are_an_error(kept: BlobCache) -> None:
    kept.put(EXECUTOR, b"4\ncode")
    with pytest.raises(DelegateError, match="delegraph cache clear numba_cpu"):
        load()


def test_a_damaged_file_is_compiled_again_with_one_warning(
    filled: Path, executor: bytes, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_processes.Compiler, "compile", lambda self, family: executor)
    content = bytearray(filled.read_bytes())
    content[-10] ^= 1
    filled.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        load()
    [record] = caplog.records
    assert "is damaged; it is made again" in record.getMessage()
    assert filled.read_bytes() == executor


def test_kernels_without_code_are_not_called(
    kept: BlobCache, executor: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    renamed = {f"{name}?": code for name, code in unpack(executor).items()}
    kept.put(EXECUTOR, pack(renamed))
    with pytest.raises(DelegateError, match="have no code"):
        load()


def test_a_full_cache_that_is_read_only_is_used(
    filled: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*arguments: object, **keywords: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setattr(building, "build", no_building)
    monkeypatch.setattr(os, "utime", refuse)
    load()
    assert caplog.records == []


def test_kernels_are_compiled_where_nothing_can_be_written(
    kept: BlobCache,
    executor: bytes,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(cache_files, "replace_file", full)
    monkeypatch.setattr(compile_processes.Compiler, "compile", lambda self, family: executor)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert load().address("executor", "run") > 0
    [record] = caplog.records
    assert os.strerror(errno.ENOSPC) in record.getMessage()


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
    for known in (families.imported_modules, families.source_text, families.source_path):
        known.cache_clear()


@pytest.mark.parametrize(
    "edited",
    [
        "kernels/moves.py",
        "codegen/intrinsics.py",
        "instructions/moves.py",
        "instructions/__init__.py",
        "codegen/cpu_levels.py",
    ],
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


@pytest.mark.parametrize("what", ["numba", "llvmlite", "triple"])
def test_compilers_and_the_kind_of_processor_are_part_of_the_version(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = cache.kernel_cache(LEVEL).version
    cache.environment_digest.cache_clear()
    if what == "numba":
        monkeypatch.setattr(cache, "numba_version", lambda: "another")
    elif what == "llvmlite":
        monkeypatch.setattr(cache.llvmlite, "__version__", "another")
    else:
        monkeypatch.setattr(cache.llvm, "get_process_triple", lambda: "another")
    after = cache.kernel_cache(LEVEL).version
    monkeypatch.undo()
    cache.environment_digest.cache_clear()
    assert after != before
    assert cache.kernel_cache(LEVEL).version == before


def test_kernels_of_two_families_may_have_the_same_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "KERNELS", {})
    first = registry.kernel(Instruction("same", "one", "x y"))(lambda record, tile, worker: None)
    second = registry.kernel(Instruction("same", "two", "x y"))(lambda record, tile, worker: None)
    assert {"one": {"same": first}, "two": {"same": second}} == registry.KERNELS


# -- compiling -------------------------------------------------------------------------------------


def test_progress_is_told(
    kept: BlobCache, executor: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_processes.Compiler, "compile", lambda self, family: executor)
    told: list[tuple[int, int, str]] = []
    building.build(["executor"], LEVEL, kept, lambda *words: told.append(words))
    assert told == [(0, 1, ""), (1, 1, "executor")]


def test_a_family_that_cannot_be_compiled_is_an_error_that_says_what_to_do(kept: BlobCache) -> None:
    with pytest.raises(DelegateError, match=r"'nonsense' cannot be compiled for .*nonsense"):
        building.build(["nonsense", "executor"], LEVEL, kept)
    if LEVEL.name != "generic":
        with pytest.raises(DelegateError, match="option cpu=generic needs no special"):
            building.build(["nonsense"], LEVEL, kept)
    with pytest.raises(DelegateError, match="please report this"):
        building.build(["nonsense"], LEVELS["generic"], kept)


def test_an_abort_of_llvm_is_an_error_too(kept: BlobCache, monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import os, sys; print('LLVM ERROR: Cannot select', file=sys.stderr); os.abort()"
    monkeypatch.setattr(compile_processes, "_PROGRAM", program)
    with pytest.raises(DelegateError, match=r"cannot be compiled .* LLVM ERROR: Cannot select$"):
        building.build(["executor"], LEVEL, kept)


def test_neither_settings_for_numba_nor_the_present_folder_have_a_say(
    kept: BlobCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")
    (tmp_path / "numba.py").write_text("raise OSError('not this one')")
    monkeypatch.chdir(tmp_path)
    assert building.build(["executor"], LEVEL, kept)["executor"]


def test_a_python_that_does_not_know_where_it_is_says_so(
    kept: BlobCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(DelegateError, match="delegraph numba warmup"):
        building.build(["executor"], LEVEL, kept)


@pytest.mark.parametrize("level", supported_levels(), ids=lambda level: level.name)
def test_every_level_of_this_processor_runs(level: CpuLevel) -> None:
    assert library(level) is library(level)
    library(level).load([])
    assert library(level).level == level
