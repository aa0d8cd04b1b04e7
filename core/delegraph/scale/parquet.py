"""Parquet files as columns of rows; needs PyArrow: ``pip install 'delegraph[parquet]'``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.scale.rows import Columns, stacked

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet


def require_pyarrow() -> Any:
    """Return PyArrow, with its Parquet module loaded.

    Raises:
        ArgumentError: PyArrow is not installed.
    """
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ArgumentError(
            "Parquet files need PyArrow: pip install 'delegraph[parquet]'"
        ) from error
    return pyarrow


class ParquetTable:
    """The rows of a Parquet file, read piece by piece."""

    def __init__(self, path: str) -> None:
        self._path = path
        groups = self._file.metadata
        counts = [groups.row_group(i).num_rows for i in range(self._file.num_row_groups)]
        self._ends = np.cumsum([0, *counts])

    @cached_property
    def _file(self) -> pyarrow.parquet.ParquetFile:
        arrow = require_pyarrow()
        try:
            return arrow.parquet.ParquetFile(self._path)
        except (OSError, arrow.ArrowException) as error:
            raise ArgumentError(f"{self._path!r} cannot be read: {error}") from error

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, without the open file."""
        return {name: value for name, value in vars(self).items() if name != "_file"}

    def __len__(self) -> int:
        return int(self._ends[-1])

    def read(self, start: int, stop: int) -> Columns:
        """Return the columns of the rows from *start* to before *stop*, by name.

        Nested lists of equal lengths become axes.
        """
        stop = min(stop, len(self))
        first, last = np.searchsorted(self._ends, [start, stop - 1], side="right") - 1
        table = self._file.read_row_groups(list(range(first, last + 1)))
        rows = table.slice(start - int(self._ends[first]), stop - start)
        return {name: _array(rows.column(name)) for name in rows.column_names}


def _array(column: pyarrow.ChunkedArray) -> NDArray[Any]:
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    if values.dtype == object and any(isinstance(row, np.ndarray) for row in values):
        return stacked([_nested(row) for row in values])
    return values


def _nested(row: Any) -> NDArray[Any]:
    """Return *row*, a value of a column, as one array if it is a nested list; None stays None."""
    if isinstance(row, np.ndarray) and row.dtype == object and len(row):
        return stacked([_nested(part) for part in row])
    return np.asarray(row)


def write_parquet(path: str, columns: Columns) -> None:
    """Write *columns* to the Parquet file *path*; axes after the rows become lists.

    Raises:
        ArgumentError: PyArrow is missing, or it has no type for a column.
    """
    arrow = require_pyarrow()
    try:
        table = arrow.table({name: _written(arrow, values) for name, values in columns.items()})
    except arrow.ArrowException as error:
        raise ArgumentError(f"a column cannot be written to Parquet: {error}") from error
    arrow.parquet.write_table(table, path)


def _written(arrow: Any, values: NDArray[Any]) -> Any:
    if values.dtype == object:
        return arrow.array([_plain(value) for value in values], _row_type(arrow, values))
    inner = arrow.array(values.reshape(-1))
    for axis in range(values.ndim - 1, 0, -1):
        count = int(np.prod(values.shape[:axis]))
        offsets = np.arange(count + 1, dtype=np.int32) * values.shape[axis]
        inner = arrow.ListArray.from_arrays(offsets, inner)
    return inner


def _row_type(arrow: Any, rows: NDArray[Any]) -> Any:
    """Return Arrow's type of rows of numbers, some of them None; of other rows None."""
    first = next((row for row in rows if isinstance(row, np.ndarray | np.generic)), None)
    if first is None or first.dtype.kind not in "biuf":
        return None
    kind = arrow.from_numpy_dtype(first.dtype)
    for _ in range(first.ndim):
        kind = arrow.list_(kind)
    return kind


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def join_parquet(pieces: Sequence[str], path: str) -> None:
    """Write the rows of the Parquet files *pieces* into the file *path*, a row group for each."""
    arrow = require_pyarrow()
    schemas = [arrow.parquet.read_schema(piece) for piece in pieces]
    schema = arrow.unify_schemas(schemas, promote_options="permissive")
    with arrow.parquet.ParquetWriter(path, schema) as writer:
        for piece in pieces:
            writer.write_table(arrow.parquet.read_table(piece).cast(schema))
