"""Rows of ``.npz`` files as samples: arrays whose first axis counts the rows."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.tools.array_files import read_npz
from delegraph.tools.evaluation.task import content_digest

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class NpzRow:
    """A row of an ``.npz`` file: element *index* of each array along its first axis.

    Attributes:
        path: path of the file.
        index: index of the row.
    """

    path: str
    index: int

    @property
    def key(self) -> str:
        """Name of the row from file and index: ``rows.npz[3]``."""
        return f"{self.path}[{self.index}]"

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return a mapping from the name of each array to the row's values.

        Raises:
            ArgumentError: the file can no longer be read.
        """
        arrays = _arrays(self.path, _stamp(self.path))
        return {name: array[self.index] for name, array in arrays.items()}

    def digest(self) -> str:
        """Digest of the names and values of the row.

        Raises:
            ArgumentError: the file can no longer be read.
        """
        parts = [
            f"{name}:{array.dtype.str}:{array.shape}:".encode() + array.tobytes()
            for name, array in sorted(self.arrays().items())
        ]
        return content_digest(b"\0".join(parts))


@lru_cache(maxsize=1)  # rows come file by file
def _arrays(path: str, stamp: object) -> Arrays:
    """Return the arrays of a file; they stay in memory for calls with the same *stamp*."""
    return read_npz(path)


def _stamp(path: str) -> object:
    """Return a value that changes when the file *path* changes; None if it does not exist."""
    with contextlib.suppress(OSError):  # reading the file reports the error
        found = os.stat(path)
        return found.st_mtime_ns, found.st_size, found.st_ino
    return None


def npz_rows(paths: Sequence[str]) -> list[NpzRow]:
    """Return the rows of the ``.npz`` files *paths*, in order.

    Raises:
        ArgumentError: a file cannot be read, is given twice, holds no array, an array without
            rows, or arrays of different numbers of rows.
    """
    files = [os.path.realpath(path) for path in paths]
    for place, path in enumerate(paths):
        if files[place] in files[:place]:
            raise ArgumentError(f"{path!r} is given twice; each row counts once")
    return [NpzRow(path, index) for path in paths for index in range(_count(path))]


def _count(path: str) -> int:
    counts = {name: array.shape[:1] for name, array in read_npz(path).items()}
    shown = ", ".join(f"{name!r} {list(count)}" for name, count in sorted(counts.items()))
    if len(set(counts.values())) != 1 or () in counts.values():
        raise ArgumentError(
            f"{path!r}: expected arrays of as many rows each, along their first axis; got "
            f"{shown or 'no array'}"
        )
    return int(next(iter(counts.values()))[0])
