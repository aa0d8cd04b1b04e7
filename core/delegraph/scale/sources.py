"""Where the rows of a job come from: a folder of files, ``.npz``, Parquet or JSON lines.

A row that cannot be read is told with its reason, and the others go on.
"""

from __future__ import annotations

import hashlib
import json
import os
from abc import ABC, abstractmethod
from array import array
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.scale.parquet import ParquetTable
from delegraph.scale.rows import Columns, columns_of, row_count, stacked
from delegraph.tools.array_files import read_npy, read_npz
from delegraph.tools.model_call import Details
from delegraph.tools.model_inputs import fitted
from delegraph.tools.pictures import is_picture, picture_as_input

FILE = "file"
"""Column with the path of the file of each row, below the folder."""

Unread = dict[int, str]
"""Place of a row to why it cannot be read."""


class Source(ABC):
    """Rows by their number; pickled to other processes, which read the same."""

    @abstractmethod
    def __len__(self) -> int:
        """Return how many rows there are."""

    @abstractmethod
    def read(self, start: int, stop: int) -> tuple[Columns, Unread]:
        """Return the columns of the rows that can be read, and why others cannot.

        Args:
            start: number of the first row.
            stop: of the one after the last.
        """

    @abstractmethod
    def identity(self) -> str:
        """Return what tells these rows from any others."""


def open_source(path: str, inputs: Sequence[Details]) -> Source:
    """Return the rows of a folder or a file.

    Args:
        path: a folder of pictures or ``.npy`` files, or a ``.npz``, ``.parquet``, ``.jsonl`` file.
        inputs: of the model.

    Raises:
        ArgumentError: it is not there, of another kind, or cannot be read.
    """
    if os.path.isdir(path):
        return FileRows(path, inputs)
    if not os.path.exists(path):
        raise ArgumentError(f"{path!r} is not there")
    kinds = {".npz": NpzRows, ".parquet": ParquetRows, ".jsonl": JsonRows}
    kind = kinds.get(Path(path).suffix.lower())
    if kind is None:
        raise ArgumentError(
            f"{path!r} is neither a folder nor a file of {', '.join(kinds)}; for a single picture "
            "or array there is 'delegraph run'"
        )
    opened: Source = kind(path)
    return opened


class FileRows(Source):
    """The pictures and ``.npy`` files of a folder and those below it, by name: a row each."""

    def __init__(self, folder: str, inputs: Sequence[Details]) -> None:
        if len(inputs) != 1:
            names = ", ".join(str(entry["name"]) for entry in inputs)
            raise ArgumentError(
                f"a folder gives one input, and the model has {len(inputs)} ({names}): put their "
                "columns into a .npz, .parquet or .jsonl file"
            )
        self._folder = folder
        [self._details] = inputs
        found = sorted(path for path in Path(folder).rglob("*") if _is_row(path))
        if not found:
            raise ArgumentError(f"{folder!r} has neither pictures nor .npy files")
        self._names = [path.relative_to(folder).as_posix() for path in found]

    def __len__(self) -> int:
        return len(self._names)

    def read(self, start: int, stop: int) -> tuple[Columns, Unread]:
        rows: dict[str, NDArray[Any]] = {}
        unread: Unread = {}
        for place, name in enumerate(self._names[start:stop]):
            try:
                rows[name] = self._row(os.path.join(self._folder, name))
            except ArgumentError as error:
                unread[place] = str(error)
        if not rows:
            return {}, unread
        values = stacked(list(rows.values()))
        return {FILE: np.array(list(rows), object), self._details["name"]: values}, unread

    def _row(self, path: str) -> NDArray[Any]:
        """Return the input of a file, without the axis of the batch that an input has."""
        if is_picture(path):
            values = picture_as_input(path, self._details)
        else:
            values = fitted(read_npy(path), self._details, path)
        return values[0] if len(values) == 1 else values

    def identity(self) -> str:
        return _digest(f"{n} {_stamp(os.path.join(self._folder, n))}" for n in self._names)


class NpzRows(Source):
    """The arrays of a ``.npz`` file as columns."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._count = row_count(self._columns)

    @cached_property
    def _columns(self) -> Columns:
        return columns_of(read_npz(self._path))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the columns, which each process reads for itself."""
        return {name: value for name, value in vars(self).items() if name != "_columns"}

    def __len__(self) -> int:
        return self._count

    def read(self, start: int, stop: int) -> tuple[Columns, Unread]:
        return {name: values[start:stop] for name, values in self._columns.items()}, {}

    def identity(self) -> str:
        return _digest([_stamp(self._path)])


class ParquetRows(Source):
    """The columns of a Parquet file. Needs PyArrow: ``pip install 'delegraph[parquet]'``."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._table = ParquetTable(path)

    def __len__(self) -> int:
        return len(self._table)

    def read(self, start: int, stop: int) -> tuple[Columns, Unread]:
        return self._table.read(start, stop), {}

    def identity(self) -> str:
        return _digest([_stamp(self._path)])


class JsonRows(Source):
    """JSON lines: an object a line, its values numbers, texts, or nested lists of numbers."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._starts = array("q", [0])  # where lines begin, and the end of the last
        with open(path, "rb") as file:
            for line in file:
                self._starts.append(self._starts[-1] + len(line))

    def __len__(self) -> int:
        return len(self._starts) - 1

    def read(self, start: int, stop: int) -> tuple[Columns, Unread]:
        rows: list[dict[str, Any]] = []
        unread: Unread = {}
        with open(self._path, "rb") as file:
            file.seek(self._starts[start])
            for place in range(min(stop, len(self)) - start):
                try:
                    rows.append(_json_row(file.readline(), rows))
                except ValueError as error:
                    unread[place] = f"{self._path}, line {start + place + 1}: {error}"
        columns = {name: stacked([np.asarray(r[name]) for r in rows]) for name in (rows or [{}])[0]}
        return columns, unread

    def identity(self) -> str:
        return _digest([_stamp(self._path)])


def _json_row(line: bytes, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the values of a line, which has the keys of those before.

    Raises:
        ValueError: it is no such object.
    """
    row = json.loads(line)
    if not isinstance(row, dict):
        raise ValueError(f"is {type(row).__name__}, expected an object")
    if rows and row.keys() != rows[0].keys():
        raise ValueError(f"has the keys {sorted(row)}, expected {sorted(rows[0])}")
    for name, value in row.items():
        np.asarray(value)  # a list with lists of other lengths is no array
        if value is None:
            raise ValueError(f"{name!r} is null")
    return row


def _is_row(path: Path) -> bool:
    return path.is_file() and (path.suffix.lower() == ".npy" or is_picture(str(path)))


def _stamp(path: str) -> str:
    status = os.stat(path)
    return f"{status.st_size} {status.st_mtime_ns}"


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()
