"""Maps model files into memory, so that their parts are views without copies."""

from __future__ import annotations

import mmap
import os
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.errors import ArgumentError, MalformedModelError, SectionError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph.bundles.bundle import Bundle
    from delegraph.bundles.opening import Chain


SETTLED = 3.0
"""Seconds without a change after which a later change is certain to alter a file's times."""


class MappedFile(mmap.mmap):
    """The memory of a mapped file.

    Attributes:
        path: absolute path of the file.
        status: status of the file when it was mapped.
    """

    path: str | bytes
    status: os.stat_result


def map_file(path: str | os.PathLike[str]) -> NDArray[np.uint8]:
    """Return the file at *path* as a read-only array, ``[bytes], uint8``, mapped into memory.

    Raises:
        OSError: the file cannot be opened.
        MalformedModelError: the file is empty.
    """
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise MalformedModelError(f"{os.fspath(path)!r} is empty")
        mapped = MappedFile(file.fileno(), 0, access=mmap.ACCESS_READ)
        mapped.status = os.fstat(file.fileno())
        mapped.path = os.path.abspath(path)
    return np.frombuffer(mapped, np.uint8)


def mapped_file(content: NDArray[Any]) -> MappedFile | None:
    """Return the mapped file of which *content* is a view; None for other memory."""
    base: Any = content
    while isinstance(base, np.ndarray):
        base = base.base
    memory = getattr(base, "obj", None)  # of a memoryview, as NumPy makes one
    return memory if isinstance(memory, MappedFile) else None


def settled_identity(status: os.stat_result) -> tuple[int, ...] | None:
    """Return numbers that identify a file's content; None if it was changed too recently.

    The numbers are device, inode number, size and times. Every change updates the change time
    (ctime), which no program can set back. The times are too coarse to distinguish two changes
    within a moment, so :data:`SETTLED` seconds must have passed.
    """
    changed = status.st_mtime_ns, status.st_ctime_ns
    if not 0 <= max(changed) < (time.time() - SETTLED) * 1e9 or not status.st_ino:
        return None
    return status.st_dev, status.st_ino, status.st_size, *changed


def is_unchanged(content: NDArray[np.uint8]) -> bool:
    """Whether *content* still equals the loaded model; a mapped file may have been overwritten."""
    file = mapped_file(content)
    if file is None:
        return True
    before = file.status
    try:
        now = os.stat(file.path)
    except OSError:
        return True  # removed; the mapped memory remains valid
    if (now.st_dev, now.st_ino) != (before.st_dev, before.st_ino):
        return True  # replaced; the mapped memory remains valid
    times = (now.st_size, now.st_mtime_ns, now.st_ctime_ns)
    return times == (before.st_size, before.st_mtime_ns, before.st_ctime_ns)


def bundle_at(path: str | os.PathLike[str]) -> Bundle | None:
    """Return the bundle at *path*, with or without ``#SECTION``; None if it is no bundle.

    Raises:
        ArgumentError: the file cannot be opened.
        ModelError: the file is damaged, or does not have the section.
    """
    from delegraph.bundles.opening import find_bundle  # lazy import: most files are models

    content, _, sections = mapped_address(path)
    try:
        return find_bundle(content, sections)
    except (MalformedModelError, SectionError) as error:
        raise type(error)(f"{os.fspath(path)}: {error}") from error


def bundles_of(path: str | os.PathLike[str], memory_limit: int | None = None) -> Chain:
    """Return the nested bundles with the model at *path*, outermost first.

    Each has the section that contains the next one. The result is empty if the file itself is the
    model.

    Args:
        path: path of a file, or ``FILE#SECTION``.
        memory_limit: maximal number of decompressed bytes; None means a limit that suits the file.

    Raises:
        ArgumentError: the file cannot be opened.
        ModelError: the file is damaged, does not have the section, or has several models.
    """
    from delegraph.bundles.opening import find_model  # lazy import: most files are models

    content, _, sections = mapped_address(path)
    return find_model(content, sections, memory_limit).chain


def mapped_address(path: str | os.PathLike[str]) -> tuple[NDArray[np.uint8], str, str | None]:
    """Return content and path of the file in an address, and the address's section part.

    The section part is the text after the ``#`` that ends the file's path; None if there is none.

    Args:
        path: path of a file, or ``FILE#SECTION``.

    Raises:
        ArgumentError: the file cannot be opened.
        MalformedModelError: the file is empty.
    """
    file, sections = os.fspath(path), None
    if "#" in file:
        from delegraph.bundles.opening import split_address  # lazy import: most files are models

        file, sections = split_address(file)
    try:
        return map_file(file), file, sections
    except OSError as error:
        reason = error.strerror or error
        if os.path.isdir(file):
            from delegraph.graph.other_formats import other_folder

            reason = other_folder(file)
        raise ArgumentError(f"Could not open '{file}': {reason}") from error
