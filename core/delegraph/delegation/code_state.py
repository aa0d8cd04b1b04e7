"""The state of a package's code, on which all depends that is kept of its decisions."""

from __future__ import annotations

import os
import sys
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


def edited_state(kind: type) -> str:
    """Text that changes when the sources of the package that defines a class may have changed.

    It is empty for a package that lies where wheels are installed, and for a class without a file,
    as in a notebook: their versions alone say what they are.
    """
    names = kind.__module__.partition(".")[0], kind.__module__  # a delegate file's has dots
    path = getattr(next(filter(None, map(sys.modules.get, names)), None), "__file__", None)
    if not path:
        return ""
    folder, name = os.path.split(path)
    try:
        return package_state(folder) if name.startswith("__init__.") else _file_state(path)
    except OSError:  # it lies in an archive
        return ""


@cache
def package_state(package: str) -> str:
    """State of a package's files at the first call in this process; later edits change no class."""
    is_installed = _holds_wheels(os.path.dirname(package)) or installation(package) is not None
    return "" if is_installed else files_state([package])


def _file_state(path: str) -> str:
    from hashlib import sha256

    if _holds_wheels(os.path.dirname(path)):
        return ""
    with open(path, "rb") as file:
        return sha256(file.read()).hexdigest()


def _holds_wheels(folder: str) -> bool:
    return os.path.basename(folder) in ("site-packages", "dist-packages")


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
