"""Prebuilt libraries of kernels in this package, made by ``library/linking.py``.

A published wheel has a library for each level of a type of processor, and needs no compiler and no
linker. An installation from source has a library for the processor of this machine, and a generic
one. The sources of an editable installation may change after the build. The libraries are then
ignored, and kernels are compiled when they are needed.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from delegraph_numba_cpu.codegen.cpu_levels import CpuLevel
from delegraph_numba_cpu.codegen.host_platform import host_machine, host_system
from delegraph_numba_cpu.codegen.object_code import symbol_of, unpack

if TYPE_CHECKING:
    from pathlib import Path

    from delegraph_numba_cpu.library.cache import OpensCache
    from delegraph_numba_cpu.library.compile_processes import Progress

PACKAGE = os.path.dirname(os.path.dirname(__file__))
FOLDER: str | Path = os.path.join(PACKAGE, "libraries")
MANIFEST = "manifest.txt"


class Manifest:
    """Description of the folder of libraries, written together with the libraries.

    Attributes:
        sources: digest of the source files that the kernels were compiled from.
        in_place: whether the installation is editable.
        system: name of the operating system, as ``codegen/host_platform.py`` spells it.
        machine: type of processor.
        files: mapping from a level to the name of its file: a library, or object code with the
            suffix :data:`OBJECTS`.
        failures: mapping from a level that could not be compiled to the compiler's error, on one
            line.
    """

    def __init__(
        self,
        sources: str,
        in_place: bool,
        system: str,
        machine: str,
        files: Mapping[str, str],
        failures: Mapping[str, str],
    ) -> None:
        self.sources, self.in_place = sources, in_place
        self.system, self.machine = system, machine
        self.files, self.failures = files, failures

    def text(self) -> str:
        """Content of the file :data:`MANIFEST`: a name and a value in each line."""
        values = {
            "sources": self.sources,
            "in_place": "yes" if self.in_place else "no",
            "system": self.system,
            "machine": self.machine,
            **{f"file {level}": name for level, name in self.files.items()},
            **{f"failure {level}": error for level, error in self.failures.items()},
        }
        return "".join(f"{name}\t{value}\n" for name, value in values.items())


OBJECTS = ".objects"
"""Suffix of files with object code, which are written if there is no linker."""


class PrebuiltLibrary:
    """The compiled kernels of one instruction set, in a shared library that came with the package.

    Args:
        path: file of the library.
        sources: digest of the kernels' source files, which the library has to export.
    """

    def __init__(self, path: str | Path, sources: str) -> None:
        self.path = path
        self._library = ctypes.CDLL(str(path))
        getattr(self._library, sources_symbol(sources))

    def address(self, family: str, kernel: str) -> int:
        """Return the address of a compiled kernel.

        Args:
            family: name of the family that the kernel belongs to.
            kernel: name of the kernel.
        """
        symbol = getattr(self._library, symbol_of(family, kernel))
        address = ctypes.cast(symbol, ctypes.c_void_p).value
        assert address is not None
        return address

    def load(
        self, families: Sequence[str], open_cache: OpensCache, progress: Progress | None
    ) -> None:
        """Do nothing, whatever the arguments: the file has the kernels of all families."""


def sources_symbol(sources: str) -> str:
    """Return the name of the symbol that a library exports to identify its source files.

    Args:
        sources: digest of the source files.
    """
    return f"delegraph_sources_{sources}"


def prebuilt_library(level: CpuLevel) -> PrebuiltLibrary | None:
    """Return the opened library of compiled kernels that came with the package for one level.

    The result is None if no library fits this system and the present source files. It is also None
    if the library cannot be opened; a warning then says why.

    Args:
        level: instruction set of the processor, such as ``avx2``.
    """
    name, reason = file_name(level)
    if reason or name.endswith(OBJECTS):
        return None
    opened = open_library(os.path.join(FOLDER, name))
    if isinstance(opened, str):
        _warn("%s", opened)
        return None
    return opened


def open_library(path: str | Path) -> PrebuiltLibrary | str:
    """Return the opened library of kernels at *path*, or the reason why it cannot be used."""
    manifest = usable_manifest()
    assert not isinstance(manifest, str)
    try:
        return PrebuiltLibrary(path, manifest.sources)
    except (OSError, AttributeError) as error:
        return f"the library of kernels {path} cannot be used: {error}"


def prebuilt_objects(level: CpuLevel) -> dict[str, bytes] | None:
    """Return object code of a level's kernels that came with the package, by family.

    The result is None if no object code came with it, or if the file cannot be read; a warning then
    says why.

    Args:
        level: instruction set of the processor, such as ``avx2``.
    """
    found = prebuilt_file(level)
    if isinstance(found, str) or found.suffix != OBJECTS:
        return None
    try:
        return unpack(found.read_bytes())
    except (OSError, ValueError) as error:
        _warn("the kernels in %s cannot be used: %s", found, error)
        return None


def prebuilt_file(level: CpuLevel) -> Path | str:
    """Return the file of compiled kernels that came with the package for one level.

    Args:
        level: instruction set of the processor, such as ``avx2``.

    Returns:
        The file, or the reason why there is none as text.
    """
    from pathlib import Path  # lazy, as its import takes milliseconds

    name, reason = file_name(level)
    return reason or Path(FOLDER, name)


def has_file(level: CpuLevel) -> bool:
    """Whether the package came with a file of compiled kernels for a level.

    Args:
        level: instruction set of the processor, such as ``avx2``.
    """
    return not file_name(level)[1]


def file_name(level: CpuLevel) -> tuple[str, str]:
    """Return the name of the file of compiled kernels for a level, and why there is none.

    One of the two texts is empty: the name if there is no file, otherwise the reason.

    Args:
        level: instruction set of the processor, such as ``avx2``.
    """
    manifest = usable_manifest()
    if isinstance(manifest, str):
        return "", manifest
    if level.name in manifest.failures:
        return "", f"compiling it failed at the installation: {manifest.failures[level.name]}"
    if level.name not in manifest.files:
        return "", f"libraries were made for {', '.join(manifest.files) or 'no level'}"
    return manifest.files[level.name], ""


@cache
def usable_manifest() -> Manifest | str:
    """Return the manifest of the prebuilt kernels, or the reason why they cannot be used here."""
    try:
        manifest = read_manifest(FOLDER)
    except FileNotFoundError:
        return "no libraries came with this installation"
    except (OSError, ValueError) as error:
        reason = f"the libraries in {FOLDER} cannot be used: {error}"
        _warn("%s", reason)
        return reason
    found, wanted = (manifest.system, manifest.machine), (host_system(), host_machine())
    if found != wanted:
        return f"the libraries are for {' '.join(found)}, and this is {' '.join(wanted)}"
    if manifest.in_place and manifest.sources != _present_sources():
        return "the sources of the kernels were edited since libraries were made of them"
    return manifest


def _present_sources() -> str:
    """Return the digest of the kernels' present source files.

    It is computed again only if a file changes.
    """
    from delegraph.delegation import BlobCache, code_state

    def digest() -> bytes:
        from delegraph_numba_cpu.library.families import sources_digest

        return sources_digest().encode()

    cache = BlobCache("numba_cpu-sources", "1")
    return cache.read_or_make(code_state(PACKAGE, is_edited=True), digest).decode()


def _warn(text: str, *values: object) -> None:
    import logging  # imported here: few libraries cannot be used

    logging.getLogger(__name__).warning(text, *values)


def read_manifest(folder: str | Path) -> Manifest:
    """Return the manifest of a folder of prebuilt kernels.

    Args:
        folder: the folder.

    Raises:
        FileNotFoundError: the folder has no manifest.
        OSError: the manifest cannot be read.
        ValueError: the manifest is damaged.
    """
    with open(os.path.join(folder, MANIFEST), encoding="utf-8") as file:
        lines = [line.rstrip("\n").partition("\t") for line in file]
    values = {name: value for name, _, value in lines}
    files, failures = (
        {name.removeprefix(kind): value for name, value in values.items() if name.startswith(kind)}
        for kind in ("file ", "failure ")
    )
    try:
        sources, system, machine = values["sources"], values["system"], values["machine"]
        return Manifest(sources, values["in_place"] == "yes", system, machine, files, failures)
    except KeyError as error:
        raise ValueError(f"{MANIFEST} has no {error}") from error
