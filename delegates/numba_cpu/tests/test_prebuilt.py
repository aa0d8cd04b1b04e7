"""Libraries of kernels: made, opened without any compiler, and left alone where they do not fit."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from delegated import DIGITS
from delegraph import Interpreter
from delegraph.errors import DelegateError
from delegraph_numba_cpu.codegen.cpu_levels import LEVELS
from delegraph_numba_cpu.codegen.host_platform import host_machine
from delegraph_numba_cpu.codegen.object_code import symbol_of, unpack
from delegraph_numba_cpu.library import compile_processes, linking, prebuilt
from delegraph_numba_cpu.library.compile_processes import CompileError, compile_side_by_side
from delegraph_numba_cpu.library.cpu import supported_levels
from delegraph_numba_cpu.library.families import sources_digest
from delegraph_numba_cpu.library.kernel_library import Library
from delegraph_numba_cpu.plugin import is_ready

GENERIC = LEVELS["generic"]
FAMILIES = ("executor", "l2_normalization")  # compiled in two seconds; the second copies bytes

linked = pytest.mark.skipif(
    not linking.find_linker(), reason="there is no linker, or none that leaves symbols open"
)


def never(*arguments: object) -> None:
    raise AssertionError(arguments)


Packed = dict[str, bytes]


@pytest.fixture(scope="module")
def packed() -> Packed:
    """The compiled kernels of two families, of the generic level."""
    return compile_side_by_side(FAMILIES, GENERIC, 1, lambda family, make: make(), unheard)


def unheard(*words: object) -> None:
    """Progress that nobody looks at."""


@pytest.fixture(scope="module")
def made(packed: Packed, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a library of these kernels."""
    folder = tmp_path_factory.mktemp("libraries")
    _make(folder, packed)
    return folder


def _make(folder: Path, packed: Packed | None = None, progress: linking.Progress = unheard) -> None:
    """Make a library, of kernels that were compiled before if there are any."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linking, "families", lambda: FAMILIES)
        patch.setattr(linking, "usable_processors", lambda: 1)  # each would import Numba
        if packed is not None:
            patch.setattr(linking, "compile_side_by_side", lambda *arguments: packed)
        linking.make_libraries(folder, [GENERIC], False, progress)


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of it in the place of those of this package."""
    shutil.copytree(made, tmp_path / "libraries")
    monkeypatch.setattr(prebuilt, "FOLDER", tmp_path / "libraries")
    prebuilt.usable_manifest.cache_clear()
    yield tmp_path / "libraries"
    prebuilt.usable_manifest.cache_clear()


def change(folder: Path, **values: Any) -> None:
    manifest = prebuilt.read_manifest(folder)
    (folder / prebuilt.MANIFEST).write_text(
        prebuilt.Manifest(**{**vars(manifest), **values}).text()
    )
    prebuilt.usable_manifest.cache_clear()


@linked
def test_a_library_has_the_kernels(folder: Path) -> None:
    library = prebuilt.prebuilt_library(GENERIC)
    assert library is not None
    assert Path(library.path).parent == folder
    assert (
        library.address("executor", "run")
        != library.address("l2_normalization", "l2_normalization")
        != 0
    )
    made = Library(GENERIC)
    made.load(["l2_normalization"])
    assert made.address("l2_normalization", "l2_normalization") == library.address(
        "l2_normalization", "l2_normalization"
    )
    assert prebuilt.prebuilt_library(LEVELS["avx2"]) is None


@linked
def test_a_library_exports_nothing_else_and_needs_none(made: Path) -> None:
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed")
    [path] = made.glob("*.so")
    shown = subprocess.run(
        ["readelf", "-Wd", "--dyn-syms", path], capture_output=True, text=True, check=True
    ).stdout
    assert "(NEEDED)" not in shown
    names = [
        (line.split()[6], line.split()[7]) for line in shown.splitlines() if " GLOBAL " in line
    ]
    own = {name for place, name in names if place != "UND"}
    assert {name for name in own if not name.startswith("delegraph_")} <= {
        "_edata", "_end", "__bss_start"}  # fmt: skip
    assert symbol_of("executor", "run") in own
    # No memcpy: without a version it would be the slow one of the oldest glibc.
    assert {name for place, name in names if place == "UND"} <= {
        "memset", "memmove", "sched_getcpu", "syscall", "usleep"}  # fmt: skip


def test_the_same_sources_give_the_same_bytes_and_progress_is_told(
    made: Path, tmp_path: Path
) -> None:
    told: list[tuple[str, int, int]] = []
    _make(tmp_path, progress=lambda *words: told.append(words))
    assert told == [("generic", 0, 2), ("generic", 1, 2), ("generic", 2, 2)]
    files = [path.name for path in made.iterdir()]
    assert [path.name for path in tmp_path.iterdir()] == files
    for name in files:
        assert (tmp_path / name).read_bytes() == (made / name).read_bytes(), name


def test_what_is_there_is_not_made_again_and_the_old_is_removed(folder: Path) -> None:
    (folder / "generic_0123456789abcdef.so").write_bytes(b"of other sources")
    before = {path: path.stat().st_mtime_ns for path in folder.glob("generic_*")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linking, "compile_side_by_side", never)
        _make(folder)
    after = {path: path.stat().st_mtime_ns for path in folder.glob("generic_*")}
    assert len(after) == 1
    assert after.items() <= before.items()


def test_libraries_of_other_levels_stay(folder: Path) -> None:
    sources = sources_digest()[:16]
    [made] = folder.glob("generic_*")
    other = f"avx2_{sources}{made.suffix}"
    (folder / other).write_bytes(b"made before")
    _make(folder, packed={})
    files = prebuilt.read_manifest(folder).files
    assert files == {"avx2": other, "generic": made.name}
    assert {path.name for path in folder.iterdir()} == {*files.values(), prebuilt.MANIFEST}


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("all", ["amx_int8", "avx512_vbmi", "avx512_vnni", "avx_vnni", "avx2", "generic"]),
        ("generic, avx2", ["avx2", "generic"]),
    ],
)
def test_levels_are_named(words: str, names: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "host_machine", lambda: "x86_64")
    assert [level.name for level in linking.levels_named(words)] == names


def test_native_is_the_best_level_of_this_processor_and_the_one_for_any() -> None:
    assert {*linking.levels_named("native")} == {supported_levels()[0], GENERIC}


@pytest.mark.parametrize("broken", ["import numbered", "import os; os.abort()"])
def test_a_broken_compiler_costs_the_kernels_and_the_reason_is_kept(
    broken: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_processes, "_PROGRAM", broken)
    monkeypatch.setattr(linking, "families", lambda: FAMILIES)
    levels = linking.levels_named("native")
    for path in folder.iterdir():
        path.unlink()
    with pytest.raises(CompileError, match="cannot be compiled for"):
        linking.make_libraries(folder, levels, True, unheard)
    made = linking.make_libraries(folder, levels, True, unheard, must_succeed=False)
    assert (made.files, list(made.failures)) == ({}, [level.name for level in levels])
    assert made.text() == prebuilt.read_manifest(folder).text()
    prebuilt.usable_manifest.cache_clear()
    reason = "compiling it failed at the installation: the kernels .* cannot be compiled"
    assert re.match(reason, str(prebuilt.prebuilt_file(GENERIC)))
    assert not is_ready()


def test_without_kernels_the_core_computes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(folder, files={}, failures={level.name: "no Numba" for level in LEVELS.values()})
    monkeypatch.delenv("DELEGRAPH_DEFAULT_DELEGATES")
    interpreter = Interpreter(DIGITS)
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert not interpreter.placement.partitions


def test_levels_of_another_family_cannot_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "host_machine", lambda: "aarch64")
    names = [level.name for level in linking.levels_named("all")]
    assert names == ["neon_i8mm", "neon_dotprod", "neon", "generic"]
    with pytest.raises(
        CompileError, match=r"for 'avx2', 'sse9'; expected native, all, .* neon, generic,"
    ):
        linking.levels_named("generic,sse9,avx2")


def test_a_build_needs_no_core(fresh_python: Callable[..., str]) -> None:
    code = """
import sys
sys.modules["delegraph"] = None
from delegraph_numba_cpu.library.linking import levels_named, make_libraries
print(len(levels_named("native")))
"""
    assert fresh_python(code) == f"{len({supported_levels()[0], GENERIC})}\n"


def test_without_a_linker_object_code_comes_along(
    folder: Path, packed: Packed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linking, "find_linker", lambda machine: None)
    _make(folder, packed)
    prebuilt.usable_manifest.cache_clear()
    assert prebuilt.prebuilt_library(GENERIC) is None
    kept = prebuilt.prebuilt_objects(GENERIC)
    assert kept is not None
    assert tuple(kept) == FAMILIES
    monkeypatch.setattr("delegraph_numba_cpu.library.building.build", never)
    made = Library(GENERIC)
    made.load(["l2_normalization"])
    assert made.address("executor", "run") > 0


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"system": "beos"}, "the libraries are for beos .*, and this is "),
        ({"machine": "vax"}, "the libraries are for .* vax, and this is "),
        ({"in_place": True, "sources": "0" * 32}, "were edited since libraries were made"),
        ({"files": {}}, "libraries were made for no level"),
        ({"files": {"avx2": "avx2.so"}}, "libraries were made for avx2"),
        ({"files": {}, "failures": {"generic": "no Numba"}}, "at the installation: no Numba"),
    ],
)
def test_what_is_for_another_system_or_other_sources_is_left_alone(
    folder: Path, values: dict[str, Any], reason: str
) -> None:
    change(folder, **values)
    found = prebuilt.prebuilt_file(GENERIC)
    assert isinstance(found, str)
    assert re.search(reason, found)
    assert prebuilt.prebuilt_library(GENERIC) is None
    assert prebuilt.prebuilt_objects(GENERIC) is None


def test_without_libraries_the_reason_is_that(folder: Path) -> None:
    shutil.rmtree(folder)
    assert prebuilt.prebuilt_file(GENERIC) == "no libraries came with this installation"


def test_in_place_libraries_of_the_present_sources_are_used(folder: Path) -> None:
    change(folder, in_place=True)
    assert prebuilt.read_manifest(folder).sources == sources_digest()
    assert isinstance(prebuilt.prebuilt_file(GENERIC), Path)


@linked
def test_a_library_of_another_build_is_not_used(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    change(folder, sources="0" * 32)
    assert prebuilt.prebuilt_library(GENERIC) is None
    assert "cannot be used" in caplog.text


@pytest.mark.parametrize("content", ["", "sources", "sources\t1\n", "sources\t1\t2\n", "\x00"])
def test_a_damaged_manifest_costs_a_warning(
    folder: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / prebuilt.MANIFEST).write_text(content)
    assert "cannot be used" in str(prebuilt.prebuilt_file(GENERIC))
    assert "cannot be used" in caplog.text


@linked
def test_what_the_linker_refuses_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="cannot link the kernels"):
        linking.linked(
            {"moves": b'[["copy", 4]]\ncode'}, host_machine(), "0" * 32, linking.find_linker() or []
        )


WITHOUT_COMPILER = """
import sys
sys.modules.update(numba=None, llvmlite=None)
from delegraph import Interpreter
interpreter = Interpreter({model!r}, delegates=["numba_cpu"])
interpreter.allocate_tensors()
interpreter.invoke()
print("ran")
"""


def test_neither_numba_nor_llvmlite_is_needed(fresh_python: Callable[..., str]) -> None:
    if prebuilt.prebuilt_library(supported_levels()[0]) is None:
        pytest.skip("this installation has no libraries of the present sources")
    assert fresh_python(WITHOUT_COMPILER.format(model=str(DIGITS))) == "ran\n"


def test_without_both_the_error_says_why_and_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("delegraph_numba_cpu.library.jit_linking.llvm", None)
    said = (
        r"no kernels for avx2 \(libraries were made for generic\), and no Numba .*"
        r"pip install 'delegraph-numba-cpu\[jit\]' adds it"
    )
    with pytest.raises(DelegateError, match=said):
        Library(LEVELS["avx2"])


INSTRUCTIONS = {
    # Of a word, the bits that make it this instruction: its mask, and what they are.
    "neon": {"SMULL": (0xBFE0FC00, 0x0E20C000), "SADALP": (0xBFFFFC00, 0x0E606800)},
    "neon_dotprod": {"SDOT by lane": (0xBFC0F400, 0x0F80E000)},
    "neon_i8mm": {"SUDOT by lane": (0xBFC0F400, 0x0F00F000)},
}


@pytest.mark.repetition(1)  # each compiles a family for seconds
@pytest.mark.parametrize("level", INSTRUCTIONS)
def test_code_for_arm_is_made_anywhere_and_has_its_instructions(level: str) -> None:
    made = compile_side_by_side(
        ["conv_int8"], LEVELS[level], 1, lambda family, make: make(), unheard, "aarch64"
    )
    code = unpack(made["conv_int8"])["convolve"]
    elf_machine = int.from_bytes(code[18:20], "little")
    assert elf_machine == 183  # AArch64
    words = memoryview(code[: len(code) // 4 * 4]).cast("I")
    for name, (mask, bits) in INSTRUCTIONS[level].items():
        assert sum(word & mask == bits for word in words) >= 8, name
    others = {name: value for of in INSTRUCTIONS.values() for name, value in of.items()}
    for name, (mask, bits) in others.items():
        if "lane" in name and name not in INSTRUCTIONS[level]:
            assert not any(word & mask == bits for word in words), name
