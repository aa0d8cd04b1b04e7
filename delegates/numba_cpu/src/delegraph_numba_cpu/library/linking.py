"""Makes the libraries of this package, a file for each level; run when a wheel is built.

A library exports the kernels of all families and the digest of their sources, and nothing else. It
depends on no other library, on no version of Python, and on a few old functions of the C library.
Equal sources and compilers give equal bytes.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from delegraph_numba_cpu.codegen.cpu_levels import LEVELS, CpuLevel
from delegraph_numba_cpu.codegen.host_platform import host_machine, host_system
from delegraph_numba_cpu.codegen.numba_runtime_symbols import UNUSED
from delegraph_numba_cpu.codegen.object_code import pack, unpack
from delegraph_numba_cpu.library.compile_processes import (
    CompileError,
    compile_side_by_side,
    run_linker,
)
from delegraph_numba_cpu.library.cpu import supported_levels, usable_processors
from delegraph_numba_cpu.library.families import families, sources_digest
from delegraph_numba_cpu.library.prebuilt import MANIFEST, OBJECTS, Manifest, sources_symbol

Progress = Callable[[str, int, int], None]
"""Function that gets a level's name, the number of its compiled families, and of all families."""


def levels_named(words: str, machine: str | None = None) -> list[CpuLevel]:
    """Return the instruction-set levels that prebuilt libraries of kernels are made for.

    Args:
        words: ``native`` for this processor's best level and ``generic``; ``all`` for all levels of
            the type of processor; or level names separated by commas.
        machine: the type of processor, as ``host_platform`` names it; None for this machine.

    Raises:
        CompileError: the type of processor has no such level; or *words* is ``native``, and
            *machine* is another type than this machine's.
    """
    machine = machine or host_machine()
    levels = {name: level for name, level in LEVELS.items() if level.machine in ("", machine)}
    if words == "all":
        return list(levels.values())
    names = [name.strip() for name in words.split(",")]
    if words == "native" and machine == host_machine():
        names = [supported_levels()[0].name, "generic"]
    unknown = sorted(set(names) - set(levels))
    if unknown:
        raise CompileError(
            f"kernels cannot be made for {', '.join(map(repr, unknown))}; expected native, all, or "
            f"of {', '.join(levels)}, with commas in between"
        )
    return [level for name, level in levels.items() if name in names]


def make_libraries(
    folder: Path,
    levels: Sequence[CpuLevel],
    in_place: bool,
    progress: Progress,
    machine: str | None = None,
    must_succeed: bool = True,
) -> Manifest:
    """Write shared libraries of compiled kernels into a folder, and return its manifest.

    Existing libraries of the same sources stay unchanged, also those of other levels.

    Args:
        folder: path of the folder; libraries of other sources in it are deleted.
        levels: instruction sets, such as ``avx2``; each gets a library.
        in_place: whether the installation is editable, so that sources may change afterwards.
        progress: function that gets a level's name, the number of compiled families, and that of
            all.
        machine: the target's type of processor, as ``host_platform`` names it; None for this
            machine.
        must_succeed: whether a level that cannot be compiled is an error. Otherwise the folder has
            no library of it, and the manifest gives the reason.

    Raises:
        CompileError: a level cannot be compiled or linked, and *must_succeed* is true.
    """
    machine = machine or host_machine()
    sources = sources_digest()
    linker = find_linker(machine)
    suffix = ".so" if linker else OBJECTS
    names = {name: f"{name}_{sources[:16]}{suffix}" for name in LEVELS}
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.name not in names.values():
            path.unlink()
    failures = {}
    for level in levels:
        path = folder / names[level.name]
        if path.is_file():
            continue
        try:
            content = _library(level, machine, sources, linker, progress)
        except CompileError as error:
            if must_succeed:
                raise
            failures[level.name] = " ".join(str(error).split())
            continue
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_bytes(content)
        unfinished.replace(path)
    files = {name: file for name, file in names.items() if (folder / file).is_file()}
    manifest = Manifest(sources, in_place, host_system(), machine, files, failures)
    (folder / MANIFEST).write_text(manifest.text(), encoding="utf-8")
    return manifest


def find_linker(machine: str | None = None) -> list[str] | None:
    """Return the first words of the linker's command line; None if there is no linker.

    Only ELF linkers can be used, because an ELF library need not name the library of a function
    that it calls. So the result is None on all systems but Linux.

    Args:
        machine: the target's type of processor, as ``host_platform`` names it; None for this
            machine.
    """
    if host_system() != "linux":
        return None
    of_host = ("ld",) if machine in (None, host_machine()) else ()
    for name in ("ld.lld", *of_host):  # the first one knows all processors
        found = shutil.which(name)
        if found:
            return [found]
    if find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "ld.lld"]
    return None


def _library(
    level: CpuLevel, machine: str, sources: str, linker: list[str] | None, progress: Progress
) -> bytes:
    """Return a level's library of kernels as bytes; their object code if there is no linker."""
    names = families()
    count = 0

    def make(family: str, compile_it: Callable[[], bytes]) -> bytes:
        return compile_it()

    def done(family: str) -> None:
        nonlocal count
        count += 1
        progress(level.name, count, len(names))

    progress(level.name, 0, len(names))
    packed = compile_side_by_side(names, level, usable_processors(), make, done, machine)
    packed = dict(sorted(packed.items()))
    return pack(packed) if linker is None else linked(packed, machine, sources, linker)


def linked(packed: Mapping[str, bytes], machine: str, sources: str, linker: list[str]) -> bytes:
    """Return a shared library, as bytes, of all compiled kernels in *packed*.

    Args:
        packed: object code of the kernels of each family, by the family's name.
        machine: the target's type of processor.
        sources: digest of the kernels' source files, which the library exports.
        linker: first words of the linker's command line.

    Raises:
        CompileError: the linker fails.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "surroundings.o").write_bytes(_surroundings(machine, sources))
        for family, kernels in packed.items():
            for kernel, code in unpack(kernels).items():
                (folder / f"{family}.{kernel}.o").write_bytes(code)
        objects = sorted(path.name for path in folder.iterdir())
        options = ["-shared", "-s", "--gc-sections", "--build-id=none", "-z", "noexecstack"]
        run_linker([*linker, *options, "-o", "library", *objects], folder)
        return (folder / "library").read_bytes()


def _surroundings(machine: str, sources: str) -> bytes:
    """Return object code that completes a library: unused symbols, and the digest of its sources.

    Kernels refer to the symbols, but never use them.
    """
    import llvmlite.binding as llvm

    from delegraph_numba_cpu.codegen.targets import initialize, triple_of

    initialize(machine)
    lines = [f"@{name} = hidden global i64 0" for name in UNUSED]
    lines.append(f"@{sources_symbol(sources)} = constant i64 0")
    module = llvm.parse_assembly("\n".join(lines))
    target = llvm.Target.from_triple(triple_of(machine)).create_target_machine(
        reloc="pic", codemodel="small"
    )
    module.triple = target.triple
    module.data_layout = str(target.target_data)
    code: bytes = target.emit_object(module)
    return code
