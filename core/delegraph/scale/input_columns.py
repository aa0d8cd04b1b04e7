"""Columns of a table that an input takes: one column, or consecutive ones with one number each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError, did_you_mean
from delegraph.quantities import plural
from delegraph.scale.rows import in_row_shape, listed, row_shape, stacked
from delegraph.tools.model_call import Details, input_name

Inputs = Mapping[str, Details]
"""Mapping from the column of each of a model's inputs to the details of the input."""


def columns_of_inputs(path: str, columns: Sequence[str], inputs: Inputs) -> dict[str, list[str]]:
    """Names of the columns that each input takes, by the input's column.

    An input takes the column of its name; or the columns ``FIRST:LAST``. The only input takes all
    columns if it has as many elements, unless the user has named its column.

    Args:
        path: path of the table, for the message.
        columns: names of all columns.
        inputs: inputs of the model.

    Raises:
        ArgumentError: an input has no column, or another number of elements than columns.
    """
    return {name: _columns_of(path, columns, name, inputs) for name in inputs}


def _columns_of(path: str, columns: Sequence[str], name: str, inputs: Inputs) -> list[str]:
    if name in columns:
        return [name]
    shape = row_shape(inputs[name])
    count = -1 if -1 in shape else int(np.prod(shape))
    span = _span(columns, name)
    if span is not None:
        if count not in (-1, len(span)):
            raise ArgumentError(
                f"{input_name(inputs[name])}: {name!r} are {len(span)} columns of {path!r}, "
                f"expected {count}, one for each element"
            )
        return span
    named = [column for column in columns if column]
    if len(inputs) == 1 and len(named) == count and name == inputs[name]["name"]:
        return named
    own = inputs[name]["name"]
    what = f"inputs={{{own}: COLUMN}} names another"
    if count != 1:
        numbers = f"{count} columns" if count > 0 else "columns"
        what += f", and inputs={{{own}: FIRST:LAST}} {numbers} with one number each"
    raise ArgumentError(
        f"{path!r} has no column {name!r}{did_you_mean(name, columns)}; it has "
        f"{plural(len(columns), 'column')}: {listed(columns)}; {what}"
    )


def _span(columns: Sequence[str], name: str) -> list[str] | None:
    """Return the columns ``FIRST:LAST``; None if *name* has another form."""
    for colon in re.finditer(":", name):
        ends = name[: colon.start()], name[colon.end() :]
        if all(end in columns for end in ends):
            first, last = map(columns.index, ends)
            return list(columns[first : last + 1] or columns[last : first + 1][::-1])
    return None


def side_by_side(columns: Sequence[NDArray[Any]], details: Details) -> NDArray[Any]:
    """Return *columns* as one column for the input *details*; several have a number in each row.

    Raises:
        ArgumentError: one of several columns has lists.
    """
    if len(columns) == 1:
        return columns[0]
    if any(values.ndim > 1 for values in columns):
        raise ArgumentError(
            f"{input_name(details)}: {len(columns)} columns with lists, expected a number in each "
            "row of a column"
        )
    return stacked([in_row_shape(row, details) for row in np.stack(columns, axis=1)])
