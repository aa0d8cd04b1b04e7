"""SHA-256 of short content, and text that identifies the state of a package's code.

Both are used in the keys of cached files. ``hashlib`` loads OpenSSL, which takes longer than the
few hashes of a start with kept programs. So this module does not import it, as the standard
library's ``random`` does not.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import _Hash
    from hashlib import sha256 as _sha256

    from typing_extensions import Buffer
else:
    try:
        if sys.version_info >= (3, 12):
            from _sha2 import sha256 as _sha256
        else:
            from _sha256 import sha256 as _sha256
    except ImportError:  # Python was built without its own hash functions
        from hashlib import sha256 as _sha256


SHORT = 1 << 20
"""Number of bytes from which on ``hashlib`` is faster, even with the time of its import."""


def sha256(content: Buffer = b"") -> _Hash:
    """Return a hash object for the SHA-256 of *content*, with the methods of ``hashlib``'s objects.

    >>> sha256(b"abc").hexdigest()[:16]
    'ba7816bf8f01cfea'
    """
    if "_hashlib" in sys.modules:  # OpenSSL is there, and several times as fast
        import hashlib

        return hashlib.sha256(content)
    return _sha256(content)


def hex_digest(*pieces: memoryview | bytes) -> str:
    """Return the SHA-256 of the concatenated *pieces*, in hexadecimal digits."""
    if sum(memoryview(piece).nbytes for piece in pieces) >= SHORT:
        import hashlib  # noqa: F401 - sha256 uses it from now on
    found = sha256()
    for piece in pieces:
        found.update(piece)
    return found.hexdigest()


@cache
def code_state(package: str, folders: tuple[str, ...] = (), *, is_edited: bool = False) -> str:
    """Return text for cache keys that changes when the code of a package may have changed.

    The text is computed once per process.

    Args:
        package: folder of the package.
        folders: folders of the package whose files count if files may be edited; empty means all.
        is_edited: whether to look at the files even of an installed package.

    Raises:
        OSError: the package is in an archive, not in a folder.
    """
    installed = None if is_edited else installation(package)
    if installed is not None:
        return repr(installed)
    return files_state([os.path.join(package, folder) for folder in folders] or [package])


def edited_state(kind: type) -> str:
    """Text for cache keys that changes when source files of a class's package are edited.

    The text is empty for a package installed from a wheel, because the version identifies its code.
    It is also empty for a class without a file, as in a notebook.
    """
    names = kind.__module__.partition(".")[0], kind.__module__  # delegate files have dotted names
    path = getattr(next(filter(None, map(sys.modules.get, names)), None), "__file__", None)
    if not path:
        return ""
    folder, name = os.path.split(path)
    try:
        return package_state(folder) if name.startswith("__init__.") else _file_state(path)
    except OSError:  # the package is in an archive
        return ""


@cache
def package_state(package: str) -> str:
    """State of a package's files at the first call; later edits do not count in this process."""
    is_installed = _holds_wheels(os.path.dirname(package)) or installation(package) is not None
    return "" if is_installed else files_state([package])


def _file_state(path: str) -> str:
    if _holds_wheels(os.path.dirname(path)):
        return ""
    with open(path, "rb") as file:
        return sha256(file.read()).hexdigest()


def _holds_wheels(folder: str) -> bool:
    return os.path.basename(folder) in ("site-packages", "dist-packages")


def installation(package: str) -> tuple[str, int, int] | None:
    """Return name, size and time of the file in which the installer lists a package's files.

    Each installation writes a new list, even of the same version. The result is None for a folder
    of sources, which has no list.
    """
    place, name = os.path.split(package)
    for described in sorted(os.listdir(place)):
        if described.endswith(".dist-info") and described.partition("-")[0].lower() == name:
            with suppress(OSError):
                status = os.stat(os.path.join(place, described, "RECORD"))
                return described, status.st_size, status.st_mtime_ns
    return None


def files_state(roots: Iterable[str]) -> str:
    """Return a hash of path, size and time of all Python files in *roots*.

    The hash is quick to compute, and differs for other contents unless file times were set back.
    """
    found, folders = [], list(roots)
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.endswith(".py"):
                    status = entry.stat()
                    found.append((entry.path, status.st_size, status.st_mtime_ns))
                elif entry.name.isidentifier() and entry.name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)
    return sha256(repr(sorted(found)).encode()).hexdigest()
