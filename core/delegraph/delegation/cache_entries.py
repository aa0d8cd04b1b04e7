"""Entries of the cache folder: which there are, removing them, and the limit of their size."""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from typing import TYPE_CHECKING

from delegraph.delegation.cache_files import UNFINISHED, CacheFolder, user_cache_folder
from delegraph.delegation.configuration import configuration
from delegraph.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from delegraph.delegation.cache_files import AnyPath

CACHE_VARIABLE = "DELEGRAPH_CACHE"
"""Environment variable that names another folder than the user's."""

DAY = 24 * 60 * 60

_LEFT_OVER = rf"[0-9a-f]{{32}}-[0-9a-f]{{64}}\.blob\.\w+\{UNFINISHED}"


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


def is_entry(name: str) -> bool:
    """Return whether a file has the name of an entry: hash of a key, and digest of the content."""
    key, _, digest = name.removesuffix(".blob").partition("-")
    is_named = name.endswith(".blob") and (len(key), len(digest)) == (32, 64)
    return is_named and not (key + digest).strip("0123456789abcdef")


def cache_folder() -> str:
    """Return the cache folder: ``$DELEGRAPH_CACHE``, else the configured one, else the user's.

    Raises:
        ConfigurationError: the configuration file has a mistake.
        FileNotFoundError: this user has no home.
    """
    given = os.environ.get(CACHE_VARIABLE)
    if given:
        return given if os.path.isabs(given) else os.path.join(os.getcwd(), given)
    configured = configuration().cache_folder
    return str(configured or os.path.join(user_cache_folder(), "compiled"))


def cache_entries(folder: AnyPath | None = None) -> list[CacheEntry]:
    """Return the entries of a cache, the most recently used first; other files are skipped.

    Raises:
        OSError: the folder cannot be used.
    """
    from pathlib import Path  # here, as its import takes milliseconds

    try:
        place = Path(CacheFolder(folder or cache_folder()).place())
    except FileNotFoundError:
        return []
    found = []
    for path in place.glob("*/*/*.blob"):
        with contextlib.suppress(FileNotFoundError):  # it has just left
            status = path.lstat()
            if is_entry(path.name) and stat.S_ISREG(status.st_mode):
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
    from pathlib import Path

    now = time.time()
    for path in Path(folder.place()).glob(f"*/*/*{UNFINISHED}"):
        with contextlib.suppress(OSError):
            if re.fullmatch(_LEFT_OVER, path.name) and now - path.lstat().st_mtime > DAY:
                path.unlink()
