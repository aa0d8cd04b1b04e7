"""Libraries of kernels that come with this package; see ``linking`` for how they are made.

A wheel has one for each level of a kind of processor, for which neither a compiler nor a linker is
needed. A folder that is installed in place has them, too, but there somebody may edit the sources:
then a library of other sources is left alone, and kernels are compiled as they are needed.
"""

from __future__ import annotations

import ctypes
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from delegraph_numba_cpu.levels import CpuLevel
from delegraph_numba_cpu.objects import symbol_of, unpack
from delegraph_numba_cpu.system import host_machine, host_system

if TYPE_CHECKING:
    from delegraph_numba_cpu.building import Progress
    from delegraph_numba_cpu.cache import OpensCache

logger = logging.getLogger(__name__)

FOLDER = Path(__file__).parent / "libraries"
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the folder of libraries holds; written when they are made.

    Attributes:
        sources: the digest of the sources that they were made from.
        in_place: whether the sources lie where they may be edited.
        system: for which operating system, by the words of ``system.py``.
        machine: for which processors.
        files: level to the name of its file: a library, or what :data:`OBJECTS` ends.
    """

    sources: str
    in_place: bool
    system: str
    machine: str
    files: dict[str, str]


OBJECTS = ".objects"
"""How names of files end that hold object code, made where there was no linker."""


class PrebuiltLibrary:
    """The kernels of one level, in a library that this process has opened."""

    def __init__(self, path: Path, sources: str) -> None:
        self.path = path
        self._library = ctypes.CDLL(str(path))
        getattr(self._library, sources_symbol(sources))

    def address(self, family: str, kernel: str) -> int:
        """Return where a kernel is."""
        symbol = getattr(self._library, symbol_of(family, kernel))
        address = ctypes.cast(symbol, ctypes.c_void_p).value
        assert address is not None
        return address

    def load(
        self, families: Sequence[str], open_cache: OpensCache, progress: Progress | None
    ) -> None:
        """Do nothing: all families are there."""


def sources_symbol(sources: str) -> str:
    """Return what a library calls the sources it was made from."""
    return f"delegraph_sources_{sources}"


def prebuilt_library(level: CpuLevel) -> PrebuiltLibrary | None:
    """Return the library of a level; None where there is none for this system and these sources."""
    path = prebuilt_file(level)
    manifest = manifest_of_host()
    if path is None or manifest is None or path.suffix == OBJECTS:
        return None
    try:
        return PrebuiltLibrary(path, manifest.sources)
    except (OSError, AttributeError) as error:
        logger.warning("the library of kernels %s cannot be used: %s", path, error)
        return None


def prebuilt_objects(level: CpuLevel) -> dict[str, bytes] | None:
    """Return the packed kernels of a level's families; None where they did not come along."""
    path = prebuilt_file(level)
    if path is None or path.suffix != OBJECTS:
        return None
    try:
        return unpack(path.read_bytes())
    except (OSError, ValueError) as error:
        logger.warning("the kernels in %s cannot be used: %s", path, error)
        return None


def prebuilt_file(level: CpuLevel) -> Path | None:
    """Return the file that came along for a level; None where none is for this system."""
    manifest = manifest_of_host()
    if manifest is None or level.name not in manifest.files:
        return None
    return FOLDER / manifest.files[level.name]


@cache
def manifest_of_host() -> Manifest | None:
    """Return what the folder holds, if it is for this system and these sources."""
    try:
        manifest = read_manifest(FOLDER)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        logger.warning("the libraries in %s cannot be used: %s", FOLDER, error)
        return None
    if (manifest.system, manifest.machine) != (host_system(), host_machine()):
        return None
    if manifest.in_place:
        from delegraph_numba_cpu.families import sources_digest

        if manifest.sources != sources_digest():
            logger.info("the kernels were edited since libraries were made of them")
            return None
    return manifest


def read_manifest(folder: Path) -> Manifest:
    """Return what a folder of libraries holds.

    Raises:
        FileNotFoundError: it holds none.
        OSError: it cannot be read.
        ValueError: it is damaged.
        TypeError: it is damaged.
    """
    return Manifest(**json.loads((folder / MANIFEST).read_bytes()))
