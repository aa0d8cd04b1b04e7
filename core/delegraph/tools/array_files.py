"""Reads and writes NumPy's files, ``.npy`` and ``.npz``, without running code from them."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError

_UNREADABLE = (EOFError, OSError, RuntimeError, ValueError, zipfile.BadZipFile)
"""Exceptions that NumPy raises for a file that it cannot read."""


def read_npy(path: str) -> NDArray[Any]:
    """Return the array of the ``.npy`` file *path*.

    Raises:
        ArgumentError: the file does not exist, has another format, or holds Python objects.
    """
    loaded = _load(path)
    if not isinstance(loaded, np.ndarray):
        raise ArgumentError(f"{path!r} holds several arrays; name it .npz")
    return loaded


def read_npz(path: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of the ``.npz`` file *path*, by name.

    Raises:
        ArgumentError: the file does not exist, has another format, or holds Python objects.
    """
    loaded = _load(path)
    if isinstance(loaded, np.ndarray):
        raise ArgumentError(f"{path!r} is one array; name it .npy")
    return loaded


def _load(path: str) -> NDArray[Any] | dict[str, NDArray[Any]]:
    try:
        with open(path, "rb") as file:  # NumPy leaves the file open if it is no zip
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded
            with loaded as archive:
                return {name: archive[name] for name in archive.files}
    except _UNREADABLE as error:
        raise _unreadable(path, error) from error


def _unreadable(path: str, error: Exception) -> ArgumentError:
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    if "allow_pickle" in reason:
        reason = (
            "it is no file of NumPy, or holds Python objects; save texts as bytes: "
            "np.array([...], 'S')"
        )
    return ArgumentError(f"{path!r} cannot be read: {reason}")


def write_npz(path: str, names: Sequence[str], arrays: Sequence[NDArray[Any]]) -> None:
    """Write *arrays* to the ``.npz`` file *path* under *names*, or ``output_0``, ... if not unique.

    Strings are written as bytes, which every reader accepts.

    Raises:
        ArgumentError: the file cannot be written.
    """
    if len(set(names) - {"", "file"}) < len(names):  # np.savez has a parameter called file
        names = [f"output_{i}" for i in range(len(names))]
    plain = [array.astype(bytes) if array.dtype.kind == "O" else array for array in arrays]
    try:
        named: dict[str, Any] = dict(zip(names, plain, strict=True))
        np.savez(path, **named)
    except OSError as error:
        raise ArgumentError(f"--save {path!r}: {error.strerror or error}") from error
