"""Opens a data source by the suffix of its path."""

from __future__ import annotations

import os
from pathlib import Path

from delegraph.errors import ArgumentError
from delegraph.graph.metadata import NOTHING_SAID, TensorMetadata
from delegraph.scale.csv_rows import CsvRows
from delegraph.scale.input_columns import Inputs
from delegraph.scale.json_lines import JsonRows
from delegraph.scale.sources import FileRows, NpyRows, NpzRows, ParquetRows, Source, Table
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
    source = kind(path, inputs)
    if not len(source):
        raise ArgumentError(f"{path!r} has no rows")
    return source
