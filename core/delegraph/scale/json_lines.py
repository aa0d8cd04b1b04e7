"""JSON lines as rows: one object per line, with numbers, texts or nested lists."""

from __future__ import annotations

import json
import math
import re
from array import array
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.scale.input_columns import Inputs
from delegraph.scale.rows import Columns, as_numbers_of, fitted_row, in_row_shape, listed, stacked
from delegraph.scale.sources import Rows, Table

_REAL = re.compile(rb"\d[.eE][-+\d]")
"""Pattern of a part of each real number, which texts may have, too."""

_KEY = re.compile(rb'"((?:[^"\\]|\\.)*)"(\s*:)?')
"""Pattern of a JSON text, and of the colon after it, which makes it a key of an object."""


class JsonRows(Table):
    """The lines of a file as rows; other keys than those of inputs may be missing in a line.

    Blank lines are no rows.

    Args:
        path: path of the file.
        inputs: inputs of the model.

    Raises:
        ArgumentError: no line is a JSON object, or none has the key of an input.
    """

    def __init__(self, path: str, inputs: Inputs) -> None:
        super().__init__(path, inputs)
        self._starts = array("q")  # offsets at which rows begin
        self._lines = array("q")  # numbers of their lines
        keys = self._found_keys()
        if self._starts:
            self.take(keys)
            self._find_integers()

    def _found_keys(self) -> list[str]:
        """Find the rows, and return the keys of all, in the order of their first use.

        Only lines that seem to have a new key are parsed, since that takes long.

        Raises:
            ArgumentError: no line is a JSON object.
        """
        keys: dict[str, None] = {}
        known: set[bytes] = set()
        reason = ""
        offset = 0
        with open(self.path, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    self._starts.append(offset)
                    self._lines.append(number)
                    found = (key for key, colon in _KEY.findall(line) if colon)
                    if not keys or not known.issuperset(found):
                        try:
                            row = _object(line)
                            keys |= dict.fromkeys(self.named(row))
                            known.update(map(str.encode, row))
                        except ValueError as error:
                            reason = reason or f"{self.path!r}, line {number}: {error}"
                offset += len(line)
        if reason and not keys:
            raise ArgumentError(f"{reason}; write a JSON object in each line")
        return list(keys)

    def _find_integers(self) -> None:
        """Find the inputs whose columns have no real number; parse only lines that may have one."""
        if not self.integers:
            return
        with open(self.path, "rb") as file:
            for line in file:
                if not self.integers:
                    return
                if _REAL.search(line):
                    with suppress(ValueError):
                        row = self._row(line)
                        self.integers -= {
                            name
                            for name in self.integers
                            if _has_real([row.get(key) for key in self.taken[name]])
                        }

    def _row(self, line: bytes) -> dict[str, Any]:
        """Return the object in a line, with the inputs' names of its keys.

        Raises:
            ValueError: the line is no JSON object.
        """
        row = _object(line)
        return dict(zip(self.named(row), row.values(), strict=True))

    def __len__(self) -> int:
        return len(self._starts)

    def read(self, start: int, stop: int) -> Rows:
        """Return the rows from *start* to before *stop*."""
        passed: list[Mapping[str, Any]] = []
        given: list[Columns] = []
        unread: dict[int, str] = {}
        with open(self.path, "rb") as file:
            for place, offset in enumerate(self._starts[start:stop]):
                row: Mapping[str, Any] = {}
                file.seek(offset)
                try:
                    row = self._row(file.readline())
                    given.append(self._given(row))
                except ValueError as error:
                    unread[place] = f"line {self._lines[start + place]}: {error}"
                passed.append(row)
        return Rows(
            {name: _column([row.get(name) for row in passed]) for name in self.passed},
            {name: stacked([row[name] for row in given]) for name in self.inputs if given},
            unread,
        )

    def _given(self, row: Mapping[str, Any]) -> Columns:
        """Return the model's inputs from *row*, the object of a line, by input name.

        Raises:
            ValueError: an input has no key, or a value does not fit its input.
        """
        found: Columns = {}
        for name, keys in self.taken.items():
            for key in keys:
                if key not in row:
                    raise ValueError(f"has no {key!r}; its keys are {listed(list(row)) or 'none'}")
            values = [row[key] for key in keys]
            found[name] = self._value(values if len(keys) > 1 else values[0], name)
        return found

    def _value(self, value: Any, name: str) -> NDArray[Any]:
        """Return *value* as a row of the input *name*."""
        if value is None:
            raise ValueError(f"{name!r} is null")
        details = self.inputs[name]
        values = np.asarray(value)  # a ValueError where lists differ in length
        values = as_numbers_of(values, details, are_integers=name in self.integers)
        return fitted_row(in_row_shape(values, details), details, name)


def _object(line: bytes) -> dict[str, Any]:
    """Return the JSON object in a line.

    Raises:
        ValueError: the line is no JSON object.
    """
    try:
        row = json.loads(line.rstrip())
    except json.JSONDecodeError as error:  # which would count the line as the first of its text
        raise ValueError(f"is not JSON: {error.msg} at character {error.colno}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"is not JSON: byte {error.start + 1} is not UTF-8") from error
    if not isinstance(row, dict):
        raise ValueError(f"is {type(row).__name__}, expected an object")
    return row


def _has_real(value: Any) -> bool:
    """Whether *value*, or a value in its lists, is a real number such as 1.0."""
    if isinstance(value, list):
        return any(map(_has_real, value))
    return isinstance(value, float) and math.isfinite(value)


def _column(values: list[Any]) -> NDArray[Any]:
    """Return values as a column, whose dtype is object unless all are numbers or all are texts."""
    kinds = {float if type(value) is int else type(value) for value in values}
    column: NDArray[Any]
    try:
        if len(kinds) == 1:
            return np.asarray(values)
    except ValueError:  # lists of different lengths
        pass
    column = np.empty(len(values), object)
    column[:] = values
    return column
