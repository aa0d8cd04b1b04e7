"""Small models with TFLite Metadata and a zip of files after them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

import numpy as np

from delegraph.graph.metadata import METADATA_ENTRY
from delegraph.schema import metadata, read_model, tables, write_model
from delegraph.schema.metadata import (
    AssociatedFile,
    AssociatedFileType,
    Content,
    ModelMetadata,
    NormalizationOptions,
    ProcessUnit,
    ScoreThresholdingOptions,
    SubGraphMetadata,
    TensorMetadata,
)
from delegraph.schema.table import Table
from delegraph.schema.writer import write_root


def with_metadata(
    model: bytes,
    inputs: tuple[TensorMetadata, ...] = (),
    outputs: tuple[TensorMetadata, ...] = (),
    files: Mapping[str, bytes] | None = None,
    units: tuple[ProcessUnit, ...] = (),
    **facts: str,
) -> bytes:
    """Return *model* with metadata and, after it, a zip of *files*.

    *units* are what all inputs go through, such as a tokenizer.
    """
    subgraph = SubGraphMetadata(
        input_tensor_metadata=inputs, output_tensor_metadata=outputs, input_process_units=units
    )
    root = ModelMetadata(subgraph_metadata=(subgraph,), **facts)
    return with_entry(model, write_root(root, metadata.FILE_IDENTIFIER)) + zipped(files or {})


def with_entry(model: bytes, content: bytes) -> bytes:
    """Return *model* with *content* as its metadata flatbuffer."""
    record = read_model(np.frombuffer(model, np.uint8))
    buffers = record.buffers or ()
    entry = tables.Metadata(name=METADATA_ENTRY, buffer=len(buffers))
    buffer = tables.Buffer(data=np.frombuffer(content, np.uint8))
    return write_model(record.replace(buffers=(*buffers, buffer), metadata=(entry,)))


def zipped(files: Mapping[str, bytes], packing: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip file of *files*; empty bytes if there are none."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", packing) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return target.getvalue() if files else b""


def of_tensor(
    name: str = "",
    content: Table | None = None,
    *,
    mean: tuple[float, ...] = (),
    std: tuple[float, ...] = (),
    threshold: float | None = None,
    axis_labels: str = "",
    value_labels: str = "",
) -> TensorMetadata:
    """Return the metadata of a tensor; labels are file names."""
    units: list[Table] = []
    if mean:
        units.append(NormalizationOptions(mean=mean, std=std))
    if threshold is not None:
        units.append(ScoreThresholdingOptions(global_score_threshold=threshold))
    kinds = AssociatedFileType
    files = {kinds.TENSOR_AXIS_LABELS: axis_labels, kinds.TENSOR_VALUE_LABELS: value_labels}
    return TensorMetadata(
        name=name,
        content=None if content is None else Content(content_properties=content),
        process_units=tuple(ProcessUnit(options=unit) for unit in units),
        associated_files=tuple(AssociatedFile(name=n, type=k) for k, n in files.items() if n),
    )
