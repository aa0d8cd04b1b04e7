"""The state of a package's code, on which all depends that is kept of its decisions."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from functools import cache


@cache
def code_state(package: str, folders: tuple[str, ...] = (), *, is_edited: bool = False) -> str:
    """Return a text that changes when the code of a package may have changed.

    It is computed once in a process.

    Args:
        package: folder of the package.
        folders: those of its folders that count where its files may be edited; all if empty.
        is_edited: whether files count even where an installation beside them has written a list.

    Raises:
        OSError: the package is no folder, as in an archive.
    """
    installed = None if is_edited else installation(package)
    if installed is not None:
        return repr(installed)
    return files_state([os.path.join(package, folder) for folder in folders] or [package])


def installation(package: str) -> tuple[str, int, int] | None:
    """Return name, size and time of the list of files that an installation of a package wrote.

    Another version, and another installation of the same version, writes another list. None for a
    folder of sources.
    """
    place, name = os.path.split(package)
    for described in sorted(os.listdir(place)):
        if described.endswith(".dist-info") and described.partition("-")[0].lower() == name:
            with suppress(OSError):
                status = os.stat(os.path.join(place, described, "RECORD"))
                return described, status.st_size, status.st_mtime_ns
    return None


def files_state(roots: Iterable[str]) -> str:
    """Return a hash of path, size and time of all Python files in folders.

    It is quick to compute. Other contents have another state, unless somebody sets times back.
    """
    from hashlib import sha256

    digest, folders = sha256(), list(roots)
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name.endswith(".py"):
                    status = entry.stat()
                    text = f"{entry.path}\n{status.st_size} {status.st_mtime_ns}\n"
                    digest.update(text.encode(errors="surrogateescape"))
                elif entry.name.isidentifier() and entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)
    return digest.hexdigest()
