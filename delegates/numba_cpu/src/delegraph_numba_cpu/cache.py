"""Where compiled kernels are kept on disk, and for how long.

A file holds one family for one level of one processor; its name tells the sources it was made from,
its folder the compilers and the processor. Files are written in one step and never changed, so
processes that start at once do each other no harm.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import sys
import tempfile
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from delegraph_numba_cpu.cpu import CpuLevel
from delegraph_numba_cpu.families import source_digest
from delegraph_numba_cpu.objects import Objects, read_objects

logger = logging.getLogger(__name__)

CACHE_VARIABLE = "DELEGRAPH_NUMBA_CACHE"

DAY = 24 * 60 * 60
KEPT = 30 * DAY
"""Seconds after which an unused file is removed."""


def cached(family: str, level: CpuLevel) -> Objects | None:
    """Return the kernels of a family; None when they must be compiled.

    A damaged file is as good as none; the log says so once.
    """
    path = cache_folder(level) / file_name(family)
    objects = read_objects(path)
    if objects is not None:
        _mark_as_used(path)
    elif path.exists():
        logger.warning("%s is damaged; its kernels are compiled again", path)
    return objects


def file_name(family: str) -> str:
    """Return the name of a family's file; it changes with the sources."""
    return f"{family}-{source_digest(family)[:16]}.kernels"


def cache_folder(level: CpuLevel) -> Path:
    """Return the folder for objects that fit these compilers and this processor.

    It is under ``$DELEGRAPH_NUMBA_CACHE``, else where the platform keeps caches; it may not exist.
    """
    return Path(_base(), f"{level.name}-{_environment_digest()[:16]}")


def writable_folder(level: CpuLevel) -> Path:
    """Return the folder for new objects: :func:`cache_folder`, made when it is not there.

    It is a temporary one, with a warning, when that cannot be written.
    """
    folder = cache_folder(level)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):  # permissions alone do not tell on every system
            return folder
    except OSError as error:
        return _temporary_folder(str(folder), error.strerror or str(error))


def remove_unused() -> None:
    """Remove files unused for a month, of any version of anything."""
    now = time.time()
    for folder in Path(_base()).glob("*-*"):
        with contextlib.suppress(OSError):  # somebody else is at it, or it is not ours to remove
            for path in folder.iterdir():
                if now - path.stat().st_mtime > KEPT:
                    path.unlink()
            folder.rmdir()  # fails, as it should, unless it is empty


def _base() -> str:
    """Return the folder that holds those of all versions."""
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return given
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        caches = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    elif sys.platform == "darwin":
        caches = os.path.join(home, "Library", "Caches")
    else:
        caches = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return os.path.join(caches, "delegraph", "numba_cpu")


def _mark_as_used(path: Path) -> None:
    with contextlib.suppress(OSError):  # a read-only cache is a cache
        if time.time() - path.stat().st_mtime > DAY:
            os.utime(path)


@cache
def _temporary_folder(folder: str, reason: str) -> Path:
    temporary = Path(tempfile.mkdtemp(prefix="delegraph-numba-"))
    logger.warning(
        "no cache in %s: %s; kernels are compiled for this process only; %s=FOLDER names another",
        folder,
        reason,
        CACHE_VARIABLE,
    )
    return temporary


@cache
def _environment_digest() -> str:
    """Return a hash of the compilers' versions and the processor."""
    features = sorted(llvm.get_host_cpu_features().items())
    parts = (
        _numba_version(),
        llvmlite.__version__,
        llvm.get_process_triple(),
        llvm.get_host_cpu_name(),
        str(features),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _numba_version() -> str:
    """Return what tells Numba's version, without importing Numba, nor distributions' metadata."""
    found = find_spec("numba")
    if found is None or found.origin is None:
        return ""  # then nothing fits, and compiling says what is missing
    try:
        return Path(found.origin).with_name("_version.py").read_text(encoding="utf-8")
    except OSError:
        from importlib.metadata import version

        return version("numba")
