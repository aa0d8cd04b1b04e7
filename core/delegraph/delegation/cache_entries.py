"""Entries of the cache folder: listing, removing, and limiting their total size."""

from __future__ import annotations

import contextlib
import math
import os
import re
import stat
import time
from typing import TYPE_CHECKING

from delegraph.delegation.cache_files import (
    UNFINISHED,
    CacheFolder,
    is_entry,
    open_itself,
    replace_file,
)
from delegraph.delegation.configuration import cache_folder
from delegraph.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from delegraph.delegation.cache_files import AnyPath

DAY = 24 * 60 * 60

SIZES = ".sizes"
"""Name of the file with the sizes of a cache's entries, so that most writers list no folders.

Each of its lines is a number: the time at which all entries were counted, in seconds since 1970;
the bytes of all these entries; and the bytes of each entry written later. It is in the cache's own
folder.
"""

_MOST_READ = 4096
"""Size of the file ``SIZES`` in bytes from which on all entries are counted again."""

_LEFT_OVER = rf"[0-9a-f]{{32}}-[0-9a-f]{{64}}\.blob\.\w+\{UNFINISHED}"
_SHARD = r"[0-9a-f]{2}"


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One file of the cache, which holds one compiled partition.

    Attributes:
        namespace: name of the delegate that made the entry.
        version: version that the delegate gave to its entries.
        path: the file.
        size: bytes of the file.
        used: time of the last use, in seconds since 1970.
    """

    namespace: str
    version: str
    path: Path
    size: int
    used: float


def belongs(namespace: str, name: str) -> bool:
    """Whether a cache is the delegate's: *namespace* is *name*, or begins with it and ``-``."""
    return namespace == name or namespace.startswith(f"{name}-")


def cache_entries(folder: AnyPath | None = None) -> list[CacheEntry]:
    """Return the entries of a cache, the most recently used first; other files are skipped.

    Raises:
        OSError: the folder cannot be used.
    """
    from pathlib import Path  # lazy import, as its import takes milliseconds

    try:
        place = CacheFolder(folder or cache_folder()).place()
    except FileNotFoundError:
        return []
    found = []
    for namespace, version, file in _files(place):
        with contextlib.suppress(FileNotFoundError):  # the file has just been removed
            status = file.stat(follow_symlinks=False)
            if is_entry(file.name) and stat.S_ISREG(status.st_mode):
                size, used = status.st_size, status.st_mtime
                found.append(CacheEntry(namespace, version, Path(file.path), size, used))
    return sorted(found, key=lambda entry: (-entry.used, entry.path))


def _files(place: str) -> Iterator[tuple[str, str, os.DirEntry[str]]]:
    """Yield the files of the cache *place*, each with the names of its namespace and version."""
    for namespace, version, found in _versions(place):
        if re.fullmatch(_SHARD, found.name):
            for file in _content(found.path):
                yield namespace, version, file


def _versions(place: str) -> Iterator[tuple[str, str, os.DirEntry[str]]]:
    """Yield the content of each version's folder, with the names of its namespace and version."""
    for namespace in _content(place):
        for version in _content(namespace.path):
            for found in _content(version.path):
                yield namespace.name, version.name, found


def _content(folder: str) -> list[os.DirEntry[str]]:
    """Return the directory entries of a folder; none if the folder has been removed."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as found:
        return list(found)
    return []


def remove_entry(entry: CacheEntry) -> None:
    """Remove an entry, and its folders if they become empty; a missing file is no error.

    Raises:
        OSError: the entry cannot be removed.
    """
    entry.path.unlink(missing_ok=True)
    for folder in entry.path.parents[:3]:  # the shard, the version, the namespace
        with contextlib.suppress(FileNotFoundError):
            if all(path.suffix == ".lock" for path in folder.iterdir()):
                import shutil

                shutil.rmtree(folder, ignore_errors=True)


def trim(folder: CacheFolder, limit: int, added: int) -> None:
    """Remove the least recently used entries, but not the newest, until all fit in *limit* bytes.

    The folder is read only if the limit may be exceeded, and once a day; see :data:`SIZES`.

    Args:
        folder: the cache.
        limit: maximal number of bytes of all entries.
        added: bytes of the entry that was just written.
    """
    place = folder.place()
    sizes = os.path.join(place, SIZES)
    if _sum_of(sizes, added) <= limit:
        return
    entries = cache_entries(folder.path)
    total = sum(entry.size for entry in entries)
    for entry in reversed(entries[1:]):
        if total <= limit:
            break
        with contextlib.suppress(OSError):  # a reader on Windows has it open
            remove_entry(entry)
            total -= entry.size
    with contextlib.suppress(OSError):  # the next writer counts again
        replace_file(sizes, b"%d\n%d\n" % (time.time(), total))
    _remove_unfinished(place)


def _sum_of(sizes: str, added: int) -> float:
    """Add *added*, the bytes of a new entry, to the file *sizes*; return the bytes of all entries.

    The result is infinite if the entries have to be counted: the file is missing, more than a day
    old, too long or damaged.
    """
    try:
        with open(sizes, "ab+", opener=_open_existing) as file:
            file.seek(0)
            content = file.read(_MOST_READ)
            file.write(b"%d\n" % added)
    except OSError:
        return math.inf
    lines = content.split(b"\n")[:-1]
    is_usable = len(lines) > 1 and len(content) < _MOST_READ and all(map(bytes.isdigit, lines))
    if not is_usable or not 0 <= time.time() - int(lines[0]) < DAY:
        return math.inf
    return sum(map(int, lines[1:]), added)


def _open_existing(name: str, flags: int) -> int:
    return open_itself(name, flags & ~os.O_CREAT)


def _remove_unfinished(place: str) -> None:
    """Remove files in *place* that a process left unfinished more than a day ago.

    Entries outside of shards, which earlier versions of Delegraph wrote, are removed after a day,
    too.
    """
    now = time.time()
    found = [file for _, _, file in _files(place) if re.fullmatch(_LEFT_OVER, file.name)]
    found += [file for _, _, file in _versions(place) if is_entry(file.name)]
    for file in found:
        with contextlib.suppress(OSError):
            if now - file.stat().st_mtime > DAY:
                os.unlink(file.path)
