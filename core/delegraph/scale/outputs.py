"""Output files of a job: pieces of rows, joined into one file at the end."""

from __future__ import annotations

import csv
import json
import shutil
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.scale.parquet import join_parquet, require_pyarrow, write_parquet
from delegraph.scale.rows import Columns, is_ragged, one_value_a_row


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """A format of output files.

    Attributes:
        write: function that writes columns to a file; it raises ArgumentError for columns that the
            format does not support.
        join: function that writes the rows of several files, in order, to one file.
        require: function that raises ArgumentError if a package that the format needs is not
            installed.
        has_cells: whether values are texts in cells, so that texts of the data are unchanged.
        has_nulls: whether a value may be missing, as the outputs of bad rows are.
    """

    write: Callable[[str, Columns], object]
    join: Callable[[Sequence[str], str], object]
    require: Callable[[], object] = lambda: None
    has_cells: bool = False
    has_nulls: bool = True


def output_format(path: str) -> OutputFormat:
    """Return the output format for the suffix of a path.

    Raises:
        ArgumentError: no format has this suffix, or a package that the format needs is not
            installed.
    """
    found = FORMATS.get(Path(path).suffix.lower())
    if found is None:
        raise ArgumentError(f"{path!r}: expected a file ending in {', '.join(FORMATS)}")
    found.require()
    return found


# -- JSON lines ------------------------------------------------------------------------------------


def write_json_lines(path: str, columns: Columns) -> None:
    """Write each row as a JSON object to *path*; NaN, infinity and missing values are null."""
    names = list(columns)
    values = [_json_values(column) for column in columns.values()]
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        for row in zip(*values, strict=True):
            file.write(_json(dict(zip(names, row, strict=True))) + "\n")


def _json(value: Any) -> str:
    """Return a value in JSON; times and decimal numbers, which JSON lacks, are texts."""
    return json.dumps(value, ensure_ascii=False, default=str)


def _json_values(values: NDArray[Any]) -> list[Any]:
    if values.dtype == object:
        return [_json_object(value) for value in values]
    if values.dtype.kind == "S":
        return list(np.char.decode(values, "utf-8", "backslashreplace").tolist())
    if values.dtype.kind == "V":  # bfloat16 and other types of ml_dtypes
        values = values.astype(np.float32)
    if values.dtype.kind == "f" and values.dtype.itemsize < 8:
        values = values.astype(str).astype(np.float64)  # the shortest digits of the type
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        real = values.astype(object)
        real[~np.isfinite(values)] = None
        return list(real.tolist())
    found: list[Any] = values.tolist()
    return found


def _json_object(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _json_values(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return _json_values(np.array([value]))[0] if isinstance(value, np.generic) else value


def join_lines(pieces: Sequence[str], path: str) -> None:
    """Write the lines of the files *pieces*, in order, into the file *path*."""
    with open(path, "wb") as whole:
        for piece in pieces:
            with open(piece, "rb") as file:
                shutil.copyfileobj(file, whole)


# -- CSV -------------------------------------------------------------------------------------------


def write_csv(path: str, columns: Columns) -> None:
    """Write a line of names, then a line per row; arrays are JSON, missing values empty cells.

    An array of one number is a plain number.
    """
    values = [_csv_values(column) for column in columns.values()]
    with open(path, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*values, strict=True))


def _csv_values(column: NDArray[Any]) -> list[Any]:
    return [
        _json(value) if isinstance(value, bool | list | dict) else value
        for value in _json_values(one_value_a_row(column))
    ]


def join_csv(pieces: Sequence[str], path: str) -> None:
    """Write the rows of the CSV files *pieces* into the file *path*, with one line of names."""
    with open(path, "w", encoding="utf-8", newline="") as whole:
        for number, piece in enumerate(pieces):
            with open(piece, encoding="utf-8", newline="") as file:
                if number:
                    next(csv.reader(file))  # a name may contain line breaks
                shutil.copyfileobj(file, whole)


# -- .npz ------------------------------------------------------------------------------------------


def write_npz_columns(path: str, columns: Columns) -> None:
    """Write each column as an array to the file *path*; missing values are NaN or empty text."""
    with zipfile.ZipFile(path, "w") as archive:  # savez cannot store a column called "file"
        for name, values in columns.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, _npz_values(name, values), allow_pickle=False)


def _npz_values(name: str, values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype != object:
        return values
    if is_ragged(values):
        raise ArgumentError(
            f"column {name!r} has another shape in each row, which .npz has not: write .parquet or "
            ".jsonl"
        )
    if all(value is None or isinstance(value, str | bytes) for value in values.flat):
        texts = [_json_object("" if value is None else value) for value in values.flat]
        return np.array(texts, str).reshape(values.shape)
    try:
        return np.array([np.nan if value is None else value for value in values], np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"column {name!r} has values that .npz cannot hold: write .jsonl"
        ) from error


def join_npz(pieces: Sequence[str], path: str) -> None:
    """Join the rows of the ``.npz`` files *pieces* in one file, with one piece in memory at a time.

    Raises:
        ArgumentError: rows of a column differ in shape.
    """
    with np.load(pieces[0]) as first:
        names = first.files
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for name in names:
            dtype, shape = _whole(name, pieces)
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                header = {
                    "descr": np.lib.format.dtype_to_descr(dtype),
                    "fortran_order": False,
                    "shape": shape,
                }
                np.lib.format.write_array_header_2_0(file, header)
                for piece in pieces:
                    file.write(_column(piece, name).astype(dtype).tobytes())


def _whole(name: str, pieces: Sequence[str]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Return dtype and row shape of the column *name* in the joined file."""
    columns = [_described(_column(piece, name)) for piece in pieces]
    rows = {shape[1:] for _, shape in columns}
    if len(rows) > 1:
        shapes = ", ".join(map(str, sorted(rows)))
        raise ArgumentError(
            f"column {name!r} has rows of the shapes {shapes}, which .npz has not: write .parquet "
            "or .jsonl"
        )
    count = sum(shape[0] for _, shape in columns)
    return np.result_type(*(dtype for dtype, _ in columns)), (count, *rows.pop())


def _described(values: NDArray[Any]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    return values.dtype, values.shape


def _column(piece: str, name: str) -> NDArray[Any]:
    with np.load(piece) as arrays:
        found: NDArray[Any] = arrays[name]
        return found


FORMATS: Mapping[str, OutputFormat] = {
    ".jsonl": OutputFormat(write_json_lines, join_lines),
    ".csv": OutputFormat(write_csv, join_csv, has_cells=True),
    ".npz": OutputFormat(write_npz_columns, join_npz, has_nulls=False),
    ".parquet": OutputFormat(write_parquet, join_parquet, require_pyarrow),
}
