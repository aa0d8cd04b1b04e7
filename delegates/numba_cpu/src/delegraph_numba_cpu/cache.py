"""Where compiled kernels are kept on disk, and for how long.

A file holds one family for one level of one processor; its name tells the sources it was made from,
its folder the compilers and the processor. Files are written in one step and never changed, so
processes that start at once do each other no harm. Only files that nobody else may write are used;
:mod:`delegraph.delegation.cache_files` says which those are.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from delegraph.delegation.cache_files import UNFINISHED, CacheFolder, user_cache_folder
from delegraph_numba_cpu.cpu import CpuLevel
from delegraph_numba_cpu.families import source_digest
from delegraph_numba_cpu.objects import Objects, pack, unpack

logger = logging.getLogger(__name__)

CACHE_VARIABLE = "DELEGRAPH_NUMBA_CACHE"

DAY = 24 * 60 * 60
KEPT = 30 * DAY
"""Seconds after which an unused file is removed."""

_FOLDER = re.compile(r"[a-z0-9_]+-[0-9a-f]{16}")
_FILE = re.compile(rf"\w+-[0-9a-f]{{16}}\.kernels(\.\w+{re.escape(UNFINISHED)})?")


def cached(family: str, level: CpuLevel) -> Objects | None:
    """Return the kernels of a family; None when they must be compiled.

    A damaged file, and one that others may write, is as good as none; the log says so.
    """
    place = place_of(family, level)
    try:
        folder = _folder()
        content = folder.read(place)
    except FileNotFoundError:
        logger.info("kernels of %s for %s are not in the cache", family, level.name)
        return None
    except OSError as error:
        _warn(error)
        return None
    path = folder.path / place
    objects = unpack(content, place)
    if objects is None:
        logger.warning("%s is damaged; its kernels are compiled again", path)
    else:
        _mark_as_used(path)
    return objects


def keep(family: str, level: CpuLevel, objects: Objects) -> None:
    """Put the kernels of a family into the cache; the log says when that cannot be done."""
    place = place_of(family, level)
    try:
        _folder().write(place, pack(objects, place))
    except OSError as error:
        _warn(error)


def place_of(family: str, level: CpuLevel) -> str:
    """Return the folder and the name of a family's file; they change with all that it is made of.

    That is its sources, the compilers and the processor.
    """
    folder = f"{level.name}-{_environment_digest()[:16]}"
    return f"{folder}/{family}-{source_digest(family)[:16]}.kernels"


def cache_folder(level: CpuLevel) -> Path:
    """Return the folder for objects that fit these compilers and this processor.

    It is under ``$DELEGRAPH_NUMBA_CACHE``, else where the platform keeps caches; it may not exist.

    Raises:
        FileNotFoundError: nothing says where caches are.
    """
    return _folder().path / f"{level.name}-{_environment_digest()[:16]}"


def remove_unused() -> None:
    """Remove files unused for a month, of any version of anything, and old half-written ones."""
    now = time.time()
    with contextlib.suppress(OSError):  # somebody else is at it, or it is not ours to remove
        for folder in _folder().place().iterdir():
            if not _FOLDER.fullmatch(folder.name) or folder.is_symlink():
                continue
            for path in folder.iterdir():
                kept = DAY if path.name.endswith(UNFINISHED) else KEPT
                if _FILE.fullmatch(path.name) and now - path.lstat().st_mtime > kept:
                    path.unlink()
            with contextlib.suppress(OSError):  # it is not empty
                folder.rmdir()


def _folder() -> CacheFolder:
    """Return the folder that holds those of all versions."""
    given = os.environ.get(CACHE_VARIABLE)
    path = Path(given).absolute() if given else user_cache_folder() / "numba_cpu"
    return CacheFolder(path)


_warned: set[tuple[str | None, str]] = set()
"""What was said already: where the cache should be, and why it is not used."""


def _warn(error: OSError) -> None:
    """Say once why the cache, or a file of it, is not used."""
    reason = error.strerror or str(error)
    about = (os.environ.get(CACHE_VARIABLE), reason)
    if about in _warned:
        return
    _warned.add(about)
    where = f"{error.filename} " if error.filename else ""
    logger.warning(
        "the cache of compiled kernels cannot be used: %s%s; kernels are compiled for this process "
        "only; %s=FOLDER names another cache",
        where,
        reason,
        CACHE_VARIABLE,
    )


def _mark_as_used(path: Path) -> None:
    with contextlib.suppress(OSError):  # a read-only cache is a cache
        if time.time() - path.stat().st_mtime > DAY:
            os.utime(path)


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
