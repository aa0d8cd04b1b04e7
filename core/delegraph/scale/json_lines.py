"""JSON lines as rows: one object per line, with numbers, texts or nested lists."""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.scale.rows import Columns, fitted_row, stacked
from delegraph.scale.sources import Inputs, Rows, Table, require_columns
from delegraph.tools.model_call import Details


class JsonRows(Table):
    """The lines of a file as rows; each line has the keys of the first line.

    Args:
        path: path of the file.
        inputs: inputs of the model.

    Raises:
        ArgumentError: the first line is no JSON object, or lacks an input.
    """

    def __init__(self, path: str, inputs: Inputs) -> None:
        super().__init__(path, inputs)
        self._starts = array("q", [0])  # offsets at which lines begin, and the end of the last line
        with open(path, "rb") as file:
            for line in file:
                self._starts.append(self._starts[-1] + len(line))
            file.seek(0)
            try:
                first = _object(file.readline())
            except ValueError as error:
                raise ArgumentError(f"{path!r}, line 1: {error}") from error
        self._keys = list(first)
        require_columns(path, self._keys, inputs)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def read(self, start: int, stop: int) -> Rows:
        """Return the rows from *start* to before *stop*."""
        passed: list[Mapping[str, Any]] = []
        given: list[Columns] = []
        unread: dict[int, str] = {}
        with open(self.path, "rb") as file:
            file.seek(self._starts[start])
            for place in range(min(stop, len(self)) - start):
                row: Mapping[str, Any] = {}
                try:
                    row = _object(file.readline())
                    given.append(self._given(row))
                except ValueError as error:
                    unread[place] = f"line {start + place + 1}: {error}"
                passed.append(row)
        names = [name for name in self._keys if name not in self.inputs]
        return Rows(
            {name: _column([row.get(name) for row in passed]) for name in names},
            {name: stacked([row[name] for row in given]) for name in self.inputs if given},
            unread,
        )

    def _given(self, row: Mapping[str, Any]) -> Columns:
        """Return the model's inputs from *row*, the object of a line, by input name.

        Raises:
            ValueError: the keys differ from the first line's, or a value does not fit its input.
        """
        if row.keys() != set(self._keys):
            raise ValueError(f"has the keys {sorted(row)}, expected {sorted(self._keys)}")
        return {name: _value(row[name], entry, name) for name, entry in self.inputs.items()}


def _object(line: bytes) -> dict[str, Any]:
    """Return the JSON object in a line.

    Raises:
        ValueError: the line is no JSON object.
    """
    row = json.loads(line)
    if not isinstance(row, dict):
        raise ValueError(f"is {type(row).__name__}, expected an object")
    return row


def _value(value: Any, details: Details, name: str) -> NDArray[Any]:
    """Return *value* as a row of the input *name*; float inputs accept integers."""
    if value is None:
        raise ValueError(f"{name!r} is null")
    values = np.asarray(value)  # a ValueError where lists differ in length
    if np.dtype(details["dtype"]).kind == "f" and values.dtype.kind == "i":
        values = values.astype(np.float64)
    return fitted_row(values, details, name)


def _column(values: list[Any]) -> NDArray[Any]:
    """Return values as a column, whose dtype is object unless all are numbers or all are texts."""
    column: NDArray[Any]
    try:
        column = np.asarray(values)
    except ValueError:  # lists of different lengths
        column = np.empty(len(values), object)
        column[:] = values
    return column
