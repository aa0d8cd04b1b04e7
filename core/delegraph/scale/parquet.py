"""Parquet files as columns of rows. Needs PyArrow: ``pip install 'delegraph[parquet]'``."""

from __future__ import annotations

from collections.abc import Iterable
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
    """Return PyArrow with its Parquet module.

    Raises:
        ArgumentError: it is not installed.
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
        counts = [
            self._file.metadata.row_group(i).num_rows for i in range(self._file.num_row_groups)
        ]
        self._ends = np.cumsum([0, *counts])

    @cached_property
    def _file(self) -> pyarrow.parquet.ParquetFile:
        arrow = require_pyarrow()
        try:
            return arrow.parquet.ParquetFile(self._path)
        except (OSError, arrow.ArrowException) as error:
            raise ArgumentError(f"{self._path!r} cannot be read: {error}") from error

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the open file."""
        return {name: value for name, value in vars(self).items() if name != "_file"}

    def __len__(self) -> int:
        return int(self._ends[-1])

    def read(self, start: int, stop: int) -> Columns:
        """Return the columns of rows; lists in lists become axes where all have one length."""
        stop = min(stop, len(self))
        first, last = np.searchsorted(self._ends, [start, stop - 1], side="right") - 1
        table = self._file.read_row_groups(list(range(first, last + 1)))
        rows = table.slice(start - int(self._ends[first]), stop - start)
        return {name: _array(rows.column(name)) for name in rows.column_names}


def _array(column: pyarrow.ChunkedArray) -> NDArray[Any]:
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    if values.dtype == object and len(values) and isinstance(values[0], np.ndarray):
        return stacked([_nested(row) for row in values])
    return values


def _nested(row: NDArray[Any]) -> NDArray[Any]:
    """Return a list of lists as one array."""
    if row.dtype == object and len(row) and isinstance(row[0], np.ndarray):
        return stacked([_nested(part) for part in row])
    return row


class ParquetWriter:
    """Writes columns to a Parquet file, piece by piece; arrays as lists."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._arrow = require_pyarrow()
        self._writer: Any = None

    def write(self, columns: Columns) -> None:
        """Add rows."""
        table = self._arrow.table({name: self._list(values) for name, values in columns.items()})
        if self._writer is None:
            self._writer = self._arrow.parquet.ParquetWriter(self._path, table.schema)
        self._writer.write_table(table.cast(self._writer.schema))

    def _list(self, values: NDArray[Any]) -> Any:
        """Return a column with an axis after the rows as lists of that length."""
        if values.dtype == object or values.ndim == 1:
            return self._arrow.array(values.tolist())
        inner = self._arrow.array(values.reshape(-1))
        for size in values.shape[:0:-1]:
            inner = self._arrow.FixedSizeListArray.from_arrays(inner, size)
        return inner

    def close(self) -> None:
        """End the file."""
        if self._writer is not None:
            self._writer.close()


def written(path: str, pieces: Iterable[Columns]) -> None:
    """Write pieces of columns to a Parquet file."""
    writer = ParquetWriter(path)
    try:
        for piece in pieces:
            writer.write(piece)
    finally:
        writer.close()
