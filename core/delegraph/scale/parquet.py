"""Parquet files as columns of rows; needs PyArrow: ``pip install 'delegraph[parquet]'``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.scale.input_columns import Inputs
from delegraph.scale.rows import Columns, stacked
from delegraph.scale.sources import Rows, Table

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


class ParquetRows(Table):
    """The rows of a Parquet file, read piece by piece."""

    def __init__(self, path: str, inputs: Inputs) -> None:
        super().__init__(path, inputs)
        groups = self._file.metadata
        counts = [groups.row_group(i).num_rows for i in range(self._file.num_row_groups)]
        self._ends = np.cumsum([0, *counts])
        self._read: tuple[range, Any] = (range(0), None)  # row groups, and their table
        self.take(self.named(self._file.schema_arrow.names), self._is_real())

    @cached_property
    def _file(self) -> pyarrow.parquet.ParquetFile:
        arrow = require_pyarrow()
        try:
            return arrow.parquet.ParquetFile(self.path)
        except (OSError, arrow.ArrowException) as error:
            raise ArgumentError(f"{self.path!r} cannot be read: {error}") from error

    def _is_real(self) -> list[bool]:
        """Whether each column has real numbers, or lists of them."""
        kinds = [column.type for column in self._file.schema_arrow]
        while any(hasattr(kind, "value_type") for kind in kinds):
            kinds = [getattr(kind, "value_type", kind) for kind in kinds]
        return [require_pyarrow().types.is_floating(kind) for kind in kinds]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, without the open file and its last table."""
        kept = {name: value for name, value in vars(self).items() if name != "_file"}
        return {**kept, "_read": (range(0), None)}

    def __len__(self) -> int:
        return int(self._ends[-1])

    def read(self, start: int, stop: int) -> Rows:
        """Return the rows from *start* to before *stop*; nested lists of equal lengths are axes.

        A row group, which may have a million rows, is read whole, and kept for the next call.
        """
        stop = min(stop, len(self))
        first, last = np.searchsorted(self._ends, [start, stop - 1], side="right") - 1
        groups = range(first, last + 1)
        if self._read[0] != groups:
            self._read = (groups, self._file.read_row_groups(list(groups)))
        rows = self._read[1].slice(start - int(self._ends[first]), stop - start)
        return self.split({name: _array(rows.column(name)) for name in rows.column_names})


def _array(column: pyarrow.ChunkedArray) -> NDArray[Any]:
    """Return the values of a column; one with missing numbers is an array of objects."""
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    if column.null_count and values.dtype.kind == "f":  # they would be NaN, and integers floats
        values = np.empty(len(column), object)
        values[:] = column.to_pylist()
    if values.dtype == object and any(isinstance(row, np.ndarray) for row in values):
        return stacked([_nested(row) for row in values])
    return values


def _nested(row: Any) -> NDArray[Any]:
    """Return *row*, a value of a column, as one array if it is a nested list."""
    if isinstance(row, np.ndarray) and row.dtype == object and len(row):
        return stacked([_nested(part) for part in row])
    return np.asarray(row)


def write_parquet(path: str, columns: Columns) -> None:
    """Write *columns* to the Parquet file *path*; axes after the rows become lists.

    Raises:
        ArgumentError: PyArrow is missing, or has no type for a column.
    """
    arrow = require_pyarrow()
    written = {}
    for name, values in columns.items():
        try:
            written[name] = _written(arrow, values)
        except arrow.ArrowException as error:
            raise ArgumentError(
                f"column {name!r} cannot be written to Parquet: {error}; write .jsonl"
            ) from error
    arrow.parquet.write_table(arrow.table(written), path)


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
    """Write the rows of the Parquet files *pieces* to *path*, each file as a row group."""
    arrow = require_pyarrow()
    schemas = [arrow.parquet.read_schema(piece) for piece in pieces]
    schema = arrow.unify_schemas(schemas, promote_options="permissive")
    with arrow.parquet.ParquetWriter(path, schema) as writer:
        for piece in pieces:
            writer.write_table(arrow.parquet.read_table(piece).cast(schema))
