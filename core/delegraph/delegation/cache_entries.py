"""Entries of the cache folder: which there are, removing them, and the limit of their size."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from pathlib import Path

from delegraph.delegation.cache_files import UNFINISHED, CacheFolder, user_cache_folder
from delegraph.delegation.configuration import configuration
from delegraph.lazy_dataclass import dataclass

CACHE_VARIABLE = "DELEGRAPH_CACHE"
"""Environment variable that names another folder than the user's."""

DAY = 24 * 60 * 60

ENTRY = re.compile(r"([0-9a-f]{32})-([0-9a-f]{64})\.blob")
"""Names of files: the hash of a key, and the digest of the content."""

_LEFT_OVER = re.compile(rf"[0-9a-f]{{32}}-[0-9a-f]{{64}}\.blob\.\w+{re.escape(UNFINISHED)}")


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


def cache_folder() -> Path:
    """Return the cache folder: ``$DELEGRAPH_CACHE``, else the configured one, else the user's.

    Raises:
        ConfigurationError: the configuration file has a mistake.
        FileNotFoundError: this user has no home.
    """
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return Path(given).absolute()
    return configuration().cache_folder or user_cache_folder() / "compiled"


def cache_entries(folder: Path | None = None) -> list[CacheEntry]:
    """Return the entries of a cache, the most recently used first; other files are skipped.

    Raises:
        OSError: the folder cannot be used.
    """
    try:
        place = CacheFolder(folder or cache_folder()).place()
    except FileNotFoundError:
        return []
    found = []
    for path in place.glob("*/*/*.blob"):
        with contextlib.suppress(FileNotFoundError):  # it has just left
            status = path.lstat()
            if ENTRY.fullmatch(path.name) and stat.S_ISREG(status.st_mode):
                version, namespace = path.parent, path.parent.parent
                entry = CacheEntry(
                    namespace.name, version.name, path, status.st_size, status.st_mtime
                )
                found.append(entry)
    return sorted(found, key=lambda entry: (-entry.used, entry.path))


def remove_entry(entry: CacheEntry) -> None:
    """Remove an entry and its folders if they are then empty; a missing file is no error.

    Raises:
        OSError: it cannot be removed.
    """
    entry.path.unlink(missing_ok=True)
    for folder in (entry.path.parent, entry.path.parent.parent):
        with contextlib.suppress(FileNotFoundError):
            if all(path.suffix == ".lock" for path in folder.iterdir()):
                import shutil

                shutil.rmtree(folder, ignore_errors=True)


def trim(folder: CacheFolder, limit: int) -> None:
    """Remove the least recently used entries until *limit* bytes hold; keep the newest entry."""
    entries = cache_entries(folder.path)
    total = sum(entry.size for entry in entries)
    for entry in reversed(entries[1:]):
        if total <= limit:
            break
        with contextlib.suppress(OSError):  # a reader on Windows has it open
            remove_entry(entry)
            total -= entry.size
    now = time.time()
    for path in folder.place().glob(f"*/*/*{UNFINISHED}"):
        with contextlib.suppress(OSError):
            if _LEFT_OVER.fullmatch(path.name) and now - path.lstat().st_mtime > DAY:
                path.unlink()
