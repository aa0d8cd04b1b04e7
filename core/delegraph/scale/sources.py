"""Sources of a job's rows: a folder of files, ``.npz``, Parquet, JSON lines or CSV.

A row that cannot be read is reported with the reason; the other rows are computed.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.graph.metadata import NOTHING_SAID, TensorMetadata
from delegraph.quantities import real_value
from delegraph.scale.input_columns import Inputs, columns_of_inputs, side_by_side
from delegraph.scale.rows import (
    Columns,
    columns_of,
    misfits,
    numbers_as_rows,
    row_count,
    rows_of,
    stacked,
)
from delegraph.tools.array_files import read_npy, read_npz
from delegraph.tools.decoded_pictures import blank_picture
from delegraph.tools.model_call import Details
from delegraph.tools.model_inputs import fitted
from delegraph.tools.pictures import (
    AS_DESCRIBED,
    PictureOptions,
    image_as_input,
    is_picture,
    picture_as_input,
    preparation,
)

FILE = "file"
"""Name of the column with the path of each row's file, relative to the folder."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Consecutive rows of a data source, with the reasons why rows could not be read.

    Attributes:
        passed: columns that are not inputs, with all rows.
        given: columns of inputs, with only the readable rows.
        unread: mapping from the index of an unreadable row to the reason.
    """

    passed: Columns
    given: Columns
    unread: Mapping[int, str]


class Source(ABC):
    """Numbered rows; a pickled copy in another process reads the same rows.

    Args:
        inputs: inputs of the model.

    Attributes:
        skipped: number of files that are not rows, by the ending of their names.
        preparation: text about how pictures become inputs; empty if there are no pictures.
        note: text about how the data was understood; empty if there is no doubt.
    """

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self.skipped: Mapping[str, int] = {}
        self.preparation = ""
        self.note = ""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def read(self, start: int, stop: int) -> Rows:
        """Return the rows from *start* to before *stop*, or to the end if there are fewer rows."""

    def with_texts(self) -> Source:
        """Return the source in which columns that are not inputs are the file's unchanged texts."""
        return self

    def name(self, row: int) -> str:
        """Return the name of a row, such as its file; empty if the row only has a number."""
        return ""

    def read_as(self) -> dict[str, str]:
        """Meaning of a table's numbers in words, by quantized input."""
        return {}

    @abstractmethod
    def identity(self) -> str:
        """Return a digest of the data, from names, sizes and times of its files."""


class Table(Source):
    """A data source that is one file with columns, such as ``.npz`` or Parquet.

    Args:
        path: path of the file.
        inputs: inputs of the model.

    Attributes:
        path: the argument *path*.
        taken: names of the columns that each input takes.
        passed: names of the other columns.
        integers: inputs of integers in whose columns no number is real.
    """

    def __init__(self, path: str, inputs: Inputs) -> None:
        super().__init__(inputs)
        self.path = path
        self.taken: Mapping[str, Sequence[str]] = {}
        self.passed: Sequence[str] = ()
        self.integers = {name for name in inputs if np.dtype(inputs[name]["dtype"]).kind in "iu"}
        self._of_tensors: dict[str, str] = {
            entry["tensor_name"]: column
            for column, entry in inputs.items()
            if column == entry["name"] and entry.get("tensor_name")
        }

    def named(self, keys: Collection[str]) -> list[str]:
        """Return names of columns, in which the name of an input replaces that of its tensor."""
        named = self._of_tensors
        return [named[key] if key in named and named[key] not in keys else key for key in keys]

    def take(self, columns: Sequence[str], is_real: Iterable[bool] = ()) -> None:
        """Set :attr:`taken` and :attr:`passed`, which have the names in *columns*.

        Args:
            columns: names of all columns.
            is_real: whether each column has real numbers; then its input is not in
                :attr:`integers`.

        Raises:
            ArgumentError: an input has no column.
        """
        self.taken = columns_of_inputs(self.path, columns, self.inputs)
        used = set(chain(*self.taken.values()))
        self.passed = [column for column in columns if column not in used]
        real = {column for column, each in zip(columns, is_real, strict=False) if each}
        self.integers -= {name for name in self.taken if real.intersection(self.taken[name])}

    def identity(self) -> str:
        """Return the digest of the file's size and time."""
        return digest([stamp(self.path)])

    def read_as(self) -> dict[str, str]:
        """Meaning of the numbers, as in :meth:`Source.read_as`."""
        return {
            name: f"whole numbers, read as {real_value(*details['quantization'])}"
            if name in self.integers
            else "real values, quantized"
            for name, details in self.inputs.items()
            if details["quantization"][0] and np.dtype(details["dtype"]).kind in "iu"
        }

    def split(self, columns: Columns) -> Rows:
        """Return columns as rows; a row with a value that its input cannot hold is unreadable.

        Raises:
            ArgumentError: an input cannot take any row of its column.
        """
        columns = dict(zip(self.named(columns), columns.values(), strict=True))
        inputs = self.inputs
        given = {
            n: numbers_as_rows(side_by_side([columns[c] for c in taken], inputs[n]), inputs[n])
            for n, taken in self.taken.items()
        }
        passed = {name: columns[name] for name in self.passed}
        unread: dict[int, str] = {}
        for name, values in given.items():
            for place, reason in misfits(values, self.inputs[name], name).items():
                unread.setdefault(place, reason)
        if unread:
            good = [place for place in range(row_count(columns)) if place not in unread]
            given = {n: rows_of(v, good, inputs[n], n) for n, v in given.items() if good}
        return Rows(passed, given, unread)


class NpzRows(Table):
    """The arrays of a ``.npz`` file as columns."""

    def __init__(self, path: str, inputs: Inputs) -> None:
        super().__init__(path, inputs)
        self._count = row_count(self._columns)
        is_real = [values.dtype.kind == "f" for values in self._columns.values()]
        self.take(self.named(self._columns), is_real)

    @cached_property
    def _columns(self) -> Columns:
        return columns_of(read_npz(self.path))

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling without the columns, which each process reads again."""
        return {name: value for name, value in vars(self).items() if name != "_columns"}

    def __len__(self) -> int:
        return self._count

    def read(self, start: int, stop: int) -> Rows:
        """Return the rows from *start* to before *stop*."""
        return self.split({name: values[start:stop] for name, values in self._columns.items()})


class NpyRows(NpzRows):
    """The array of a ``.npy`` file as the column of the only input."""

    @cached_property
    def _columns(self) -> Columns:
        return columns_of({only_input("a .npy file", self.inputs): read_npy(self.path)})


def only_input(what: str, inputs: Inputs) -> str:
    """Return the column of the only one of *inputs*.

    Args:
        what: kind of the data, for the message.
        inputs: inputs of the model.

    Raises:
        ArgumentError: there are several inputs.
    """
    if len(inputs) != 1:
        raise ArgumentError(
            f"{what} has one input, and the model has {len(inputs)} ({', '.join(inputs)}): "
            "put their columns into a .npz, .parquet, .jsonl or .csv file"
        )
    return next(iter(inputs))


class FileRows(Source):
    """The pictures and ``.npy`` files in a folder tree, sorted by name, one row each.

    Args:
        folder: path of the folder.
        inputs: the input of the model, which must be the only one, by column.
        described: metadata of the input.
        picture: options for converting pictures to the input.

    Raises:
        ArgumentError: the folder has no rows, or all are pictures and the input takes none so
            prepared.
    """

    def __init__(
        self,
        folder: str,
        inputs: Inputs,
        described: TensorMetadata = NOTHING_SAID,
        picture: PictureOptions = AS_DESCRIBED,
    ) -> None:
        super().__init__(inputs)
        only_input("a folder", inputs)
        self._folder = folder
        self._described = described
        self._picture = picture
        files = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        found = [path for path in files if _is_row(path)]
        others = Counter(path.suffix.lower() for path in {*files} - {*found})
        self.skipped = dict(sorted(others.items()))
        if not found:
            skipped = f" ({skipped_files(self.skipped)})" if others else ""
            raise ArgumentError(f"{folder!r} has neither pictures nor .npy files{skipped}")
        self._names = [path.relative_to(folder).as_posix() for path in found]
        if any(map(is_picture, self._names)):
            [details] = inputs.values()
            self.preparation = preparation(details, described, picture)
            if all(map(is_picture, self._names)):
                image_as_input(blank_picture(), details, described, options=picture)  # or an error

    def __len__(self) -> int:
        return len(self._names)

    def read(self, start: int, stop: int) -> Rows:
        """Return the rows from *start* to before *stop*."""
        [(column, details)] = self.inputs.items()
        names = self._names[start:stop]
        rows: list[NDArray[Any]] = []
        unread: dict[int, str] = {}
        for place, name in enumerate(names):
            try:
                rows.append(self._row(os.path.join(self._folder, name), details))
            except ArgumentError as error:
                unread[place] = str(error)
        given = {column: stacked(rows)} if rows else {}
        # Names that are not valid text get escaped bytes, because no output format accepts them.
        shown = [os.fsencode(name).decode(errors="backslashreplace") for name in names]
        return Rows({FILE: np.array(shown, object)}, given, unread)

    def name(self, row: int) -> str:
        """Return the path of a row's file, relative to the folder."""
        return self._names[row]

    def _row(self, path: str, details: Details) -> NDArray[Any]:
        """Return the array for an input from the file *path*, without the batch axis."""
        if is_picture(path):
            values = picture_as_input(path, details, self._described, options=self._picture)
        else:
            values = fitted(read_npy(path), details, path)
        return values[0, ...] if values.ndim and len(values) == 1 else values

    def identity(self) -> str:
        """Return the digest of the files' names, sizes and times."""
        return digest(f"{n} {stamp(os.path.join(self._folder, n))}" for n in self._names)


def _is_row(path: Path) -> bool:
    return path.suffix.lower() == ".npy" or is_picture(str(path))


def skipped_files(skipped: Mapping[str, int]) -> str:
    """Return a text about skipped files, from their number by the ending of their names.

    >>> skipped_files({".txt": 2, "": 1})
    '3 files skipped: .txt, without an ending'
    """
    count = sum(skipped.values())
    endings = sorted(ending for ending in skipped if ending) + ["without an ending"] * (
        "" in skipped
    )
    return f"{count:,} file{'s' * (count != 1)} skipped: {', '.join(endings)}"


def stamp(path: str) -> str:
    """Return text that changes when the file *path* changes: its size and modification time."""
    status = os.stat(path)
    return f"{status.st_size} {status.st_mtime_ns}"


def digest(texts: Iterable[str]) -> str:
    """Return the digest of texts."""
    return hashlib.sha256("\n".join(texts).encode(errors="surrogateescape")).hexdigest()
