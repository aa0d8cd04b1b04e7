"""Opens a data source by the suffix of its path."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import numpy as np

from delegraph.errors import ArgumentError
from delegraph.graph.metadata import NOTHING_SAID, TensorMetadata
from delegraph.scale.csv_rows import CsvRows, is_number
from delegraph.scale.input_columns import Inputs
from delegraph.scale.json_lines import JsonRows
from delegraph.scale.parquet import ParquetRows
from delegraph.scale.rows import row_shape
from delegraph.scale.sources import FileRows, NpyRows, NpzRows, Source, Table
from delegraph.tools.pictures import AS_DESCRIBED, PictureOptions

KINDS: dict[str, type[Table]] = {
    ".npy": NpyRows,
    ".npz": NpzRows,
    ".parquet": ParquetRows,
    ".jsonl": JsonRows,
    ".csv": CsvRows,
}


def open_source(
    path: str,
    inputs: Inputs,
    described: TensorMetadata = NOTHING_SAID,
    picture: PictureOptions = AS_DESCRIBED,
) -> Source:
    """Return the rows of a folder or a file as a source.

    Args:
        path: a folder of pictures or ``.npy`` files, or a ``.npy``, ``.npz``, ``.parquet``,
            ``.jsonl`` or ``.csv`` file.
        inputs: inputs of the model.
        described: metadata of the model's first input, used to convert pictures.
        picture: options for converting pictures.

    Raises:
        ArgumentError: the path does not exist, has an unknown suffix, is empty, or cannot be read.
    """
    if os.path.isdir(path):
        return FileRows(path, inputs, described, picture)
    if not os.path.exists(path):
        raise ArgumentError(f"{path!r} is not there")
    kind = KINDS.get(Path(path).suffix.lower())
    if kind is None:
        raise ArgumentError(
            f"{path!r} is neither a folder nor a file ending in {', '.join(KINDS)}; for a single "
            "picture or array there is 'delegraph run'"
        )
    if not os.path.getsize(path):
        raise ArgumentError(f"{path!r} is empty")
    try:
        source = kind(path, inputs)
    except ArgumentError as error:
        raise ArgumentError(f"{error}{_only_fit(kind, path, inputs)}") from error
    if not len(source):
        raise ArgumentError(f"{path!r} has no rows")
    return source


def _only_fit(kind: type[Table], path: str, inputs: Inputs) -> str:
    """Advice to take the only column of numbers, or of real ones, that fits the only input."""
    with suppress(ArgumentError, ValueError):
        [details] = inputs.values()
        table = kind(path, {})
        first = table.read(0, 1).passed if len(table) else {}
        size = np.prod(row_shape(details))
        fitting = [c for c, v in first.items() if v.dtype.kind in "iuf" and v.size == size]
        real = [column for column in fitting if first[column].dtype.kind == "f"]
        [column] = real if len(real) == 1 else fitting
        kinds = "one that fits" if len(fitting) == 1 else "one of real numbers"
        if not is_number(column):  # the first row of a file without names
            return f"; inputs={{{details['name']}: {column}}} takes the only {kinds}"
    return ""
