"""CSV tables as rows: lines of numbers and texts, under a line of column names if there is one."""

from __future__ import annotations

import codecs
import csv
import json
import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from itertools import islice
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.scale.input_columns import Inputs
from delegraph.scale.rows import (
    Columns,
    as_numbers_of,
    fitted_row,
    in_row_shape,
    row_shape,
    stacked,
)
from delegraph.scale.sources import Rows, Table
from delegraph.tools.model_inputs import as_dtype_of

_DELIMITERS = ",;\t"

_REAL = re.compile(r"\d[.eE]|[.]\d")
"""Pattern of a part of each text of a real number; texts of integers have none."""

_INTEGER = re.compile(r"\s*[-+]?\d+\s*")
"""Pattern of the text of an integer."""

_CODE = re.compile(r"[+]|-?0\d")
"""Beginning of texts that would change if they were read as numbers, such as ``007``."""

_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*")
"""Texts such as ``0,13``, which are numbers where the decimal mark is a comma."""

_TRUTH = {"true": 1, "false": 0}

_KINDS = (int, float, str)
"""Possible types of columns that are no inputs; the first that suits all cells is chosen."""


class CsvRows(Table):
    """The lines of a CSV file as rows, under the column names of its first line.

    The first line is a row if it holds a value for each element of the only input: see
    :meth:`_is_row`. Then the columns are called 1, 2 and so on, or like the input if there is one.

    An input is one column of numbers, texts or JSON lists; or consecutive columns ``FIRST:LAST``
    with one number each; or all columns, if there are as many as the only input has elements. Cells
    are separated by commas, semicolons or tabs: by the character that is the most frequent in the
    first line.

    Args:
        path: path of the file.
        inputs: inputs of the model.

    Raises:
        ArgumentError: the first line has no names, an input has no column, or quotes do not match.
    """

    def __init__(self, path: str, inputs: Inputs) -> None:
        super().__init__(path, inputs)
        self._starts = array("q")  # offsets at which rows begin
        self._lines = array("q")  # numbers of lines before these offsets
        with open(path, "rb") as file:
            line = file.readline()
            if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise ArgumentError(f"{path!r} is UTF-16, expected UTF-8")
            first = line.decode(errors="backslashreplace")
            self._delimiter = max(_DELIMITERS, key=first.count)
            file.seek(0)
            reader = _Records(file, self._delimiter)
            try:
                names = next(reader.records(), [])
                self._names = self.named([name.strip() for name in names])
                if self._is_row():
                    count = len(self._names)
                    self._names = [*map(str, range(1, count + 1))] if count > 1 else [*inputs]
                    self.note = "the first line is a row, as it has numbers in place of names"
                    file.seek(0)
                    reader = _Records(file, self._delimiter)
                elif all(map(is_number, self._names)):
                    self.note = "the first line is no row: its numbers are names of columns"
                self._places = self._found_columns()
                self._read_all(reader)
            except csv.Error as error:
                raise ArgumentError(f"{path!r}, line {reader.line}: {error}") from error

    def _is_row(self) -> bool:
        """Whether the first line is a row: numbers for all elements of the only input, or a list.

        Three or more numbers that count from 0 or 1 are names, as in tables that pandas writes. So
        are numbers if the input has another column than that of its name.
        """
        if len(self.inputs) != 1:
            return False
        [(name, details)], cells = self.inputs.items(), self._names
        if name != details["name"] or np.dtype(details["dtype"]).kind in "SOU":
            return False
        if len(cells) == 1 and cells[0].startswith("["):
            return True
        is_full = len(cells) == np.prod(row_shape(details))
        return is_full and all(map(is_number, cells)) and not _are_counted(cells)

    def _found_columns(self) -> dict[str, list[int]]:
        """Return the places of the columns of each input.

        Raises:
            ArgumentError: the first line has no usable names, or an input has no column.
        """
        names = self._names
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise ArgumentError(f"{self.path!r} has more than one column {twice[0]!r}")
        try:
            self.take(names)
        except ArgumentError as error:
            if not all(map(is_number, names)) or _are_counted(names):
                raise
            raise ArgumentError(f"{error}; the first line has numbers in place of names") from None
        return {name: list(map(names.index, columns)) for name, columns in self.taken.items()}

    def _read_all(self, reader: _Records) -> None:
        """Find the rows, and find the types of columns from the cells of all rows."""
        used = {place for places in self._places.values() for place in places}
        kinds = {place: 0 for place in range(len(self._names)) if place not in used}
        start, line = reader.offset, reader.line
        for record in reader.records():
            self._starts.append(start)
            self._lines.append(line)
            start, line = reader.offset, reader.line
            if len(record) != len(self._names):
                continue
            for place, kind in kinds.items():
                while not _is_of(record[place], _KINDS[kinds[place]]):
                    kinds[place] = kind = kind + 1
            for name in list(self.integers):
                if any(_is_real(record[place]) for place in self._places[name]):
                    self.integers.remove(name)
        self._kinds = kinds

    def __len__(self) -> int:
        return len(self._starts)

    def with_texts(self) -> CsvRows:
        """Return the source in which columns that are not inputs are the unchanged texts."""
        other = copy(self)
        other._kinds = dict.fromkeys(self._kinds, _KINDS.index(str))
        return other

    def read(self, start: int, stop: int) -> Rows:
        """Return the rows from *start* to before *stop*."""
        passed: list[Sequence[str]] = []
        given: list[Columns] = []
        unread: dict[int, str] = {}
        with open(self.path, "rb") as file:
            file.seek(self._starts[start])
            reader = _Records(file, self._delimiter, self._lines[start])
            for place, record in enumerate(islice(reader.records(), stop - start)):
                try:
                    given.append(self._given(record))
                except ValueError as error:
                    unread[place] = f"line {reader.line}: {error}"
                passed.append(record)
        return Rows(
            {
                self._names[place]: _column([row[place : place + 1] for row in passed], kind)
                for place, kind in self._kinds.items()
            },
            {name: stacked([row[name] for row in given]) for name in self.inputs if given},
            unread,
        )

    def _given(self, record: Sequence[str]) -> Columns:
        """Return the model's inputs from the cells of a row, by input name.

        Raises:
            ValueError: the number of cells is wrong, or cells do not fit their input.
        """
        if len(record) != len(self._names):
            raise ValueError(f"has {len(record)} cells, expected {len(self._names)}")
        return {
            name: self._value(name, {self._names[place]: record[place] for place in places})
            for name, places in self._places.items()
        }

    def _value(self, name: str, row: Mapping[str, str]) -> NDArray[Any]:
        """Return the value of an input from its cells by column name."""
        cells = list(row.values())
        details = self.inputs[name]
        dtype = np.dtype(details["dtype"])
        values: NDArray[Any]
        if len(cells) == 1 and cells[0].lstrip().startswith("["):
            values = _listed(next(iter(row)), cells[0])
        elif dtype.kind in "SOU":
            values = np.array(cells)
        else:
            values = np.array([self._number(name, *item) for item in row.items()])
        values = as_numbers_of(values, details, are_integers=name in self.integers)
        try:
            return fitted_row(in_row_shape(values, details), details, name)
        except ArgumentError:
            for column, value in zip(row, values.reshape(-1), strict=False):
                as_dtype_of(details, np.array([value]), column)  # an error about one cell
            raise

    def _number(self, name: str, column: str, cell: str) -> float:
        """Return the number in a cell; of a quantized input a real one if any of its cells is."""
        details = self.inputs[name]
        are_real = details["quantization"][0] and name not in self.integers
        try:
            is_integer = np.dtype(details["dtype"]).kind in "iu" and not are_real
            number = int(cell) if is_integer and _INTEGER.fullmatch(cell) else float(cell)
            if math.isinf(number) and "inf" not in cell.lower():
                raise OverflowError(f"the cell of {column!r} is {cell!r}, which is out of range")
            return number
        except OverflowError as error:
            raise ValueError(str(error)) from error
        except ValueError:
            truth = _TRUTH.get(cell.strip().lower())
            if truth is not None:
                return truth
        if not cell.strip():
            raise ValueError(f"the cell of {column!r} is empty")
        comma = " with a decimal point, not a comma" if _DECIMAL_COMMA.fullmatch(cell) else ""
        raise ValueError(f"the cell of {column!r} is {cell!r}, expected a number{comma}")


def _listed(column: str, cell: str) -> NDArray[Any]:
    """Return the array in a cell, a JSON list.

    Raises:
        ValueError: the cell is no JSON list, or its lists differ in length.
    """
    try:
        found = json.loads(cell)
    except ValueError as error:
        raise ValueError(f"the cell of {column!r} is no list in JSON: {error}") from error
    try:
        return np.asarray(found)
    except ValueError as error:
        raise ValueError(f"the cell of {column!r} has lists of different lengths") from error


class _Records:
    """Records of an open CSV file, with the position after the last one read.

    Attributes:
        offset: bytes that were read.
        line: number of the last line that was read.
    """

    def __init__(self, file: BinaryIO, delimiter: str, line: int = 0) -> None:
        self._file = file
        self.offset = 0
        self.line = line
        self._reader = csv.reader(
            self._decoded(), delimiter=delimiter, strict=True, skipinitialspace=True
        )

    def _decoded(self) -> Iterator[str]:
        for line in self._file:
            text = line.removeprefix(codecs.BOM_UTF8) if self.line == 0 else line
            self.offset += len(line)
            self.line += 1
            yield text.decode(errors="backslashreplace")

    def records(self) -> Iterator[list[str]]:
        """Yield the cells of each record; blank lines are skipped."""
        return (record for record in self._reader if record)


def _is_of(cell: str, kind: type[Any]) -> bool:
    """Whether a cell can be read as *kind* unchanged (``007`` cannot as int); True if empty."""
    if kind is str or not cell:
        return True
    try:
        kind(cell)
    except ValueError:
        return False
    return _CODE.match(cell) is None


def _column(cells: Sequence[Sequence[str]], kind: int) -> NDArray[Any]:
    """Return a column's values from lists of one cell; an empty list is a missing cell."""
    if _KINDS[kind] is str:
        return np.array([cell[0] if cell else "" for cell in cells], object)
    values = [_KINDS[kind](cell[0]) if cell and cell[0] else None for cell in cells]
    return np.array(values, None if None not in values else object)


def _is_real(cell: str) -> bool:
    """Whether a cell is a real number such as 1.0, or its list has one.

    >>> [_is_real(cell) for cell in ("1.0", "[1, 1e5]", "1", "none.1")]
    [True, True, False, False]
    """
    return _REAL.search(cell) is not None and any(
        _REAL.search(word) and is_number(word) for word in re.split(r"[][,\s]+", cell)
    )


def is_number(cell: str) -> bool:
    """Whether *cell* is the text of a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _are_counted(cells: Sequence[str]) -> bool:
    """Whether three or more cells are 0, 1, 2 and so on, or 1, 2, 3 and so on."""
    counts = [[str(start + i) for i in range(len(cells))] for start in (0, 1)]
    return len(cells) > 2 and list(cells) in counts
