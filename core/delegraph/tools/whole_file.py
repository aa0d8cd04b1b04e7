"""Reads whole files, and writes files completely or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from delegraph.errors import ArgumentError


def read_whole(path: str) -> bytes:
    """Return the content of the file *path*.

    Raises:
        ArgumentError: the file cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:  # a name that no file can have is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise ArgumentError(f"{path!r} cannot be read: {reason}") from error


def write_whole(path: str, content: bytes) -> None:
    """Write a file atomically: readers see the old or the new content; a failure keeps the old.

    Args:
        path: path of the file, or of a link to it; a device or a pipe is written directly.
        content: content of the file.

    Raises:
        OSError: the file cannot be written.
    """
    with whole_file(path) as partial:
        Path(partial).write_bytes(content)


@contextmanager
def whole_file(path: str) -> Iterator[str]:
    """Context with the path of a temporary file, which replaces *path* at the end of the block.

    Args:
        path: path of the file, or of a link to it. A device or a pipe is not replaced: the context
            has its own path.

    Raises:
        OSError: *path* cannot be replaced.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        yield str(target)
        return
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        yield str(partial)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
