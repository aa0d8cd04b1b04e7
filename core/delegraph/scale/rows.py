"""Columns of rows, and their conversion to inputs of a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delegraph.errors import ArgumentError, did_you_mean
from delegraph.tools.model_call import Details, declared_shape, input_name
from delegraph.tools.model_inputs import as_dtype_of

Columns = dict[str, NDArray[Any]]
"""Mapping from a column's name to its values; the first axis of each counts the rows."""


def columns_of(batch: Mapping[str, ArrayLike], needed: Iterable[str] = ("x",)) -> Columns:
    """Return a batch as arrays, after checking that all have the same number of rows.

    Args:
        batch: mapping from a column to its values.
        needed: columns that the model reads, for the message.

    Raises:
        ArgumentError: *batch* is no mapping, there is no column, a column has no axis of rows, or
            numbers of rows differ.
    """
    if not hasattr(batch, "items"):
        example = ", ".join(f"{name!r}: array" for name in needed)
        raise ArgumentError(f"a batch is a mapping, {{{example}}}, not {type(batch).__name__}")
    columns = {name: _column(values) for name, values in batch.items()}
    if not columns:
        raise ArgumentError("a batch needs at least one column")
    for name, values in columns.items():
        if not values.ndim:
            raise ArgumentError(f"column {name!r} is a single value; its first axis is the rows")
    counts = {name: len(values) for name, values in columns.items()}
    if len(set(counts.values())) > 1:
        each = ", ".join(f"{name!r} {count}" for name, count in counts.items())
        raise ArgumentError(f"columns have different numbers of rows: {each}")
    return columns


def _column(values: ArrayLike) -> NDArray[Any]:
    """Return *values* as an array; rows of different shapes give a column of arrays."""
    try:
        return np.asarray(values)
    except ValueError:
        rows: Any = values
    column = np.empty(len(rows), object)
    for place, row in enumerate(rows):
        with suppress(ValueError):  # then the row itself has parts of different lengths
            row = None if row is None else np.asarray(row)
        column[place] = row
    return column


def column_for(details: Details, columns: Columns, name: str) -> NDArray[Any]:
    """Return the column *name* for the input *details*.

    Raises:
        ArgumentError: there is no column of that name.
    """
    if name not in columns:
        hint = did_you_mean(name, list(columns))
        raise ArgumentError(
            f"no column {name!r} for {input_name(details)}{hint}; columns are "
            f"{listed(list(columns))}; inputs={{...}} names others"
        )
    return columns[name]


_LISTED = 12
"""Largest number of columns that an error lists one by one."""


def listed(columns: Sequence[str]) -> str:
    """Text of the names of *columns*, from the middle of which many are left out."""
    if len(columns) > _LISTED:
        columns = [*columns[: _LISTED - 2], "...", columns[-1]]
    return ", ".join(columns)


def require_no_clash(passed: Iterable[str], made: Iterable[str]) -> None:
    """Check that no name in *made*, the outputs, is also the name of a column in *passed*.

    Raises:
        ArgumentError: a name occurs twice.
    """
    for name in sorted({*passed} & {*made}):
        raise ArgumentError(
            f"column {name!r} is there already, and an output has this name: give the output's "
            f"column another one, outputs={{{name!r}: ...}}"
        )


def row_count(columns: Columns) -> int:
    """Return the number of rows in columns."""
    return len(next(iter(columns.values())))


def has_batch_axis(details: Details, column: NDArray[Any]) -> bool:
    """Whether the rows of *column* lie along the first axis of the input *details*."""
    return column.ndim == len(declared_shape(details))


def fitted_column(column: NDArray[Any], details: Details, name: str) -> NDArray[Any]:
    """Return a column converted to the dtype of the input that reads it.

    *column* is ``[rows, ...]``. A row has the input's shape, with or without its first axis. A
    column of arrays holds rows of different shapes.

    Raises:
        ArgumentError: the rows have a dtype or shape that the input does not take.
    """
    if is_ragged(column):
        return stacked([fitted_row(_row(row, name), details, name) for row in column])
    values = as_dtype_of(details, column, name)
    declared, row = declared_shape(details), list(values.shape[1:])
    wanted = declared[1:] if has_batch_axis(details, values) else declared
    fits = len(row) == len(wanted) and all(
        want in (-1, have) for want, have in zip(wanted, row, strict=True)
    )
    if not fits or (values.ndim == len(declared) and not declared):
        rows = f"{declared[1:]} or {declared}" if declared else "[]"
        raise ArgumentError(
            f"{input_name(details)}: a row of column {name!r} has shape {row}, expected {rows}"
        )
    return values


def fitted_row(values: NDArray[Any], details: Details, name: str) -> NDArray[Any]:
    """Return the values of one row, converted as a column of :func:`fitted_column` is.

    Raises:
        ArgumentError: the row has a dtype or shape that the input does not take.
    """
    row: NDArray[Any] = fitted_column(values[np.newaxis], details, name)[0, ...]  # a text, too
    return row


def row_shape(details: Details) -> list[int]:
    """Shape of a row: the input's shape without the first axis, unless it is the only axis."""
    declared = declared_shape(details)
    return declared[1:] if len(declared) > 1 or declared in ([1], [-1]) else declared


def in_row_shape(values: NDArray[Any], details: Details) -> NDArray[Any]:
    """Return *values* in the shape of a row, if they are a flat list or differ by axes of 1 only.

    >>> details = {"shape": np.array([1, 2, 2, 1]), "shape_signature": np.array([1, 2, 2, 1])}
    >>> [in_row_shape(np.ones(shape), details).shape for shape in ([4], [1, 2, 2], [4, 1, 1])]
    [(2, 2, 1), (2, 2, 1), (4, 1, 1)]
    """
    shape = row_shape(details)
    sizes = [size for size in values.shape if size != 1]
    is_alike = values.ndim < 2 or sizes == [size for size in shape if size not in (1, -1)]
    is_full = shape.count(-1) < 2 and values.size == abs(np.prod(shape))
    return values.reshape(shape) if is_full and is_alike else values


def as_numbers_of(values: NDArray[Any], details: Details, *, are_integers: bool) -> NDArray[Any]:
    """Return the numbers of a row of a text, integers or real ones as the whole column has.

    Args:
        values: the numbers; others are returned unchanged.
        details: details of the input.
        are_integers: whether no number of the column is real. Else whole numbers are real, too,
            for a quantized input.
    """
    kind = np.dtype(details["dtype"]).kind
    if values.dtype.kind not in "iuf":
        return values
    is_quantized = bool(details["quantization"][0])
    if kind == "f" or (kind in "iu" and is_quantized and not are_integers):
        values = values.astype(np.float64)
    if kind == "b" and np.isin(values, (0, 1)).all():
        return values.astype(bool)
    if kind in "iu" and not is_quantized and _are_whole(values):
        return _whole_numbers(values)
    return values


def _are_whole(values: NDArray[Any]) -> bool:
    """Whether all *values* are finite numbers without a fraction."""
    return bool(np.isfinite(values).all() and np.array_equal(values, np.rint(values)))


def _whole_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Return finite whole numbers as integers, which are objects beyond 64 bits."""
    if (np.abs(values) < 2**63).all():
        return values.astype(np.int64)
    return np.array([int(each) for each in values.flat], object).reshape(values.shape)


def numbers_as_rows(column: NDArray[Any], details: Details) -> NDArray[Any]:
    """Return a column of numbers as rows of one element, if the input takes such; others unchanged.

    >>> details = {"shape": np.array([1, 1]), "shape_signature": np.array([-1, 1])}
    >>> numbers_as_rows(np.array([2.0, 3.0]), details).tolist()
    [[2.0], [3.0]]
    """
    shape = row_shape(details)
    if column.ndim != 1 or not shape or {*shape} - {1, -1}:
        return column
    if column.dtype != object:
        return column.reshape(-1, *([1] * len(shape)))
    rows = np.empty(len(column), object)
    rows[:] = [row if np.ndim(row) or row is None else [row] for row in column]
    return rows


def _row(values: object, name: str) -> NDArray[Any]:
    """Return the values of a row of the column *name* as an array, of numbers where possible.

    Raises:
        ArgumentError: parts of the row have different lengths.
    """
    try:
        row = np.asarray(values)
        return np.asarray(row.tolist()) if row.dtype == object else row
    except ValueError:
        raise ArgumentError(f"a row of column {name!r} has parts of different lengths") from None


def misfits(values: NDArray[Any], details: Details, name: str) -> Mapping[int, str]:
    """Return the reasons of the rows of a column that an input cannot take, by place.

    Raises:
        ArgumentError: the dtype or shape that all rows have does not fit.
    """
    if not is_ragged(values):
        try:
            fitted_column(values, details, name)
            return {}
        except ArgumentError:
            if values.dtype != object:
                fitted_column(values[:0], details, name)  # dtype and shape, without the values
    found: dict[int, str] = {}
    for place, row in enumerate(values):
        try:
            fitted_row(_row(row, name), details, name)
        except ArgumentError as error:
            found[place] = str(error)
    return found


Given = Sequence[tuple[NDArray[Any], Details, str]]
"""A column for each input, with the input's details and the column's name."""


def fitted_columns(given: Given, *, omits_misfits: bool) -> tuple[Columns, dict[int, str]]:
    """Return the inputs' columns by the input's name, and the reasons of omitted rows by place.

    Args:
        given: a column for each input.
        omits_misfits: whether rows that an input cannot take are omitted.

    Raises:
        ArgumentError: an input cannot take a row, which the message names, or any row.
    """
    try:
        return {d["name"]: fitted_column(values, d, name) for values, d, name in given}, {}
    except ArgumentError:
        reasons: dict[int, str] = {}
        for values, details, name in given:
            reasons = {**misfits(values, details, name), **reasons}
        if reasons and not omits_misfits:
            row = min(reasons)
            raise ArgumentError(f"row {row}: {reasons[row]}") from None
    good = [row for row in range(len(given[0][0])) if row not in reasons]
    return {d["name"]: rows_of(values, good, d, name) for values, d, name in given}, reasons


def empty_column(details: Details) -> NDArray[Any]:
    """Return a column without rows for the input *details*."""
    return np.empty((0, *(max(size, 0) for size in row_shape(details))), details["dtype"])


def rows_of(
    column: NDArray[Any], places: Sequence[int], details: Details, name: str
) -> NDArray[Any]:
    """Return the rows of *column* at *places*, all of which the input *details* can take."""
    if not places:
        return empty_column(details)
    return stacked([fitted_row(_row(column[place], name), details, name) for place in places])


def is_ragged(column: NDArray[Any]) -> bool:
    """Whether a column holds an array object for each row, because shapes differ."""
    is_of_objects = column.dtype == object and column.ndim == 1
    return is_of_objects and any(isinstance(row, np.ndarray) for row in column)


def stacked(rows: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return rows stacked as one column; rows of different shapes give a column of arrays."""
    if len({row.shape for row in rows}) == 1:
        return np.stack(rows)
    column = np.empty(len(rows), object)
    for index, row in enumerate(rows):
        column[index] = row
    return column


def one_value_a_row(values: NDArray[Any]) -> NDArray[Any]:
    """Return a column with one axis if each row is a single value or None, else unchanged."""
    if values.dtype == object and values.ndim == 1:
        if any(isinstance(row, np.ndarray) and row.size != 1 for row in values):
            return values
        column = np.empty(len(values), object)
        for index, row in enumerate(values):
            column[index] = row.reshape(-1)[0] if isinstance(row, np.ndarray) else row
        return column
    return values.reshape(len(values)) if values.size == len(values) else values


def emptied(values: NDArray[Any], places: Sequence[int]) -> NDArray[Any]:
    """Return *values* as a column of objects, one for each row, with None at *places*.

    >>> [str(value) for value in emptied(np.array([[1], [0], [3]]), [1])]
    ['[1]', 'None', '[3]']
    """
    column = np.empty(len(values), object)
    for index, row in enumerate(values):
        column[index] = row
    column[[*places]] = None
    return column


def joined(parts: Sequence[Columns]) -> Columns:
    """Return the columns of *parts* concatenated along rows; no columns if there are no parts."""
    if not parts:
        return {}
    columns = {}
    for name in parts[0]:
        values = [part[name] for part in parts]
        if len({value.shape[1:] for value in values}) == 1:
            columns[name] = np.concatenate(values)
        else:
            columns[name] = stacked([row for value in values for row in value])
    return columns


def spread(values: NDArray[Any], places: NDArray[np.intp], rows: int) -> NDArray[Any]:
    """Return a column of *rows* rows with *values* at *places*, and NaN, None or 0 elsewhere.

    >>> spread(np.array([1.0, 2.0]), np.array([0, 2]), 3)
    array([ 1., nan,  2.])
    """
    fill = np.nan if values.dtype.kind in "fc" else None if values.dtype.kind == "O" else 0
    column = np.full((rows, *values.shape[1:]), fill, values.dtype)
    column[places] = values
    return column
