"""Constants that a model stores in other files: external buffers, grouped by file.

Source:
    ``ExternalBuffer`` and ``ExternalBufferGroup``, tflite/converter/schema/schema.fbs; the weight
    loader of LiteRT, which also accepts absolute names and files in any folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from delegraph.errors import ExternalBufferError, MalformedModelError
from delegraph.graph.model import ExternalBuffers, Model
from delegraph.graph.model_files import map_file, mapped_file
from delegraph.schema import tables
from delegraph.schema.reader import read_model
from delegraph.schema.writer import write_model

if TYPE_CHECKING:
    from numpy.typing import NDArray

Weights = Callable[[str], "NDArray[np.uint8]"]
"""Function that returns the bytes of a group, by its name."""

PACKINGS = (None, "", "unpacked")
"""Known values of ``ExternalBuffer.packing``, all of which mean unpacked bytes."""

MOST_TIMES = 4
"""Largest ratio of the bytes of external buffers, which may overlap, to those of the files."""


def load_external_buffers(record: tables.Model, weights: Weights | None) -> ExternalBuffers:
    """Return the bytes of the external buffers that tensors refer to.

    Args:
        record: the model.
        weights: function that returns the bytes of a group; None if the model is not in a file.

    Raises:
        ExternalBufferError: a group's file is missing or not allowed, too short, or packed.
        MalformedModelError: two buffers have the same id, a buffer has no group, or overlapping
            buffers have together too many bytes in comparison with their files.
    """
    buffers: dict[int, tables.ExternalBuffer] = {}
    for buffer in record.external_buffers or ():
        if buffer.id in buffers:
            raise MalformedModelError(f"two external buffers have the id {buffer.id}")
        buffers[buffer.id] = buffer
    used = {t.external_buffer for s in record.subgraphs or () for t in s.tensors or ()}
    groups = [group.name or "" for group in record.external_buffer_groups or ()]
    files: dict[str, NDArray[np.uint8]] = {}
    found = {}
    for key in sorted(used & buffers.keys()):
        buffer = buffers[key]
        if buffer.group >= len(groups):
            raise MalformedModelError(
                f"external buffer {key} is in group {buffer.group}; there are {len(groups)}"
            )
        found[key] = _slice(buffer, groups[buffer.group], files, weights)
    described, held = sum(map(len, found.values())), sum(map(len, files.values()))
    if described > MOST_TIMES * held:
        raise MalformedModelError(
            f"external buffers have {described} bytes together, and their files {held}"
        )
    return ExternalBuffers(found, tuple(files.values()))


def _slice(
    buffer: tables.ExternalBuffer,
    group: str,
    files: dict[str, NDArray[np.uint8]],
    weights: Weights | None,
) -> NDArray[np.uint8]:
    if buffer.packing not in PACKINGS:
        raise ExternalBufferError(
            f"external buffer {buffer.id} of {group!r} has the packing {buffer.packing!r}, "
            "expected 'unpacked'"
        )
    if weights is None:
        raise ExternalBufferError(
            f"external buffer {buffer.id} is in the file {group!r}, and the model was given as "
            "bytes; give the path of its file"
        )
    if group not in files:
        files[group] = weights(group)
    end, size = buffer.offset + buffer.length, len(files[group])
    if end > size:
        raise ExternalBufferError(
            f"external buffer {buffer.id} is bytes {buffer.offset} to {end} of {group!r}, which "
            f"has {size} bytes"
        )
    return files[group][buffer.offset : end]


def file_beside(
    model: str, name: str, weights_dir: str | os.PathLike[str] | None = None
) -> NDArray[np.uint8]:
    """Return the mapped file *name* from the model's folder or from *weights_dir*.

    Args:
        model: path of the model's file.
        name: name of the group: a relative path without ``..``.
        weights_dir: another folder that may contain the file, or the file's target if the file is a
            link.

    Raises:
        ExternalBufferError: the file does not exist, is empty, or lies outside of the folders.
    """
    what = f"external buffer group {name!r}"
    parts = re.split(r"[/\\]", name)
    if not parts[0] or ".." in parts or re.match(r"\w+:", name) or "\0" in name:
        raise ExternalBufferError(f"{what} is no name of a file beside the model")
    folders = [os.path.dirname(os.path.abspath(model))]
    if weights_dir is not None:
        folders.append(os.path.abspath(weights_dir))
    candidates = [os.path.realpath(os.path.join(folder, name)) for folder in folders]
    path = next(filter(os.path.exists, candidates), None)
    if path is None:
        raise ExternalBufferError(f"{what}: no such file in {' or '.join(folders)}")
    if not _is_inside(path, folders):
        raise ExternalBufferError(
            f"{what} leads to {path!r}, outside of the model's folder; "
            "Interpreter(limits=Limits(weights_dir=...)) allows another folder"
        )
    if not os.path.isfile(path):
        raise ExternalBufferError(f"{what}: {path!r} is no file")
    try:
        return map_file(path)
    except (OSError, MalformedModelError) as error:
        raise ExternalBufferError(f"{what} cannot be read: {error}") from error


def _is_inside(path: str, folders: Iterable[str]) -> bool:
    real = (os.path.join(os.path.realpath(folder), "") for folder in folders)
    return any(path.startswith(folder) for folder in real)


def records_of(model: Model, table_limit: int | None = None) -> tables.Model:
    """Return the records of a model's file, with external buffers stored in the file itself.

    Args:
        model: the loaded model.
        table_limit: maximal number of tables (operators, tensors, options); None means a million.
    """
    record, outside = read_model(model.content, table_limit), model.external_buffers
    return _with_constants(record, outside.contents) if outside.files else record


def self_contained(model: Model, record: tables.Model | None = None) -> NDArray[np.uint8]:
    """Return a model's file as bytes, with any external buffers stored in the file itself.

    Args:
        model: the model.
        record: changed records of the model, which are written with the model's associated files;
            None means no changes.

    Raises:
        MalformedModelError: the zip of associated files is damaged or too large.
    """
    if record is None and not model.external_buffers.files:
        return model.content
    from delegraph.graph.associated_files import with_associated_files  # lazy: it needs zipfile

    written = write_model(records_of(model) if record is None else record)
    return np.frombuffer(with_associated_files(written, model.content), np.uint8)


def official_source(
    model: Model, path: str | os.PathLike[str] | None, content: bytes | None
) -> tuple[str | None, bytes | None]:
    """Return the path or the bytes of a model for an official runtime; the other result is None.

    Official runtimes read only complete files, so a model with external buffers or in a bundle is
    returned as bytes.

    Args:
        model: the loaded model.
        path: path from which the model was loaded; None if it was given as bytes.
        content: the bytes that were given; None if a path was given.
    """
    if path is None:
        return None, content
    file = mapped_file(model.content)
    is_whole = file is not None and file.status.st_size == len(model.content)
    if is_whole and not model.external_buffers.files:
        return os.fspath(path), None
    return None, self_contained(model).tobytes()


def _with_constants(
    record: tables.Model, external: Mapping[int, NDArray[np.uint8]]
) -> tables.Model:
    first = len(record.buffers or ())
    numbers = {key: first + position for position, key in enumerate(external)}
    added = (tables.Buffer(data=content) for content in external.values())

    def tensor(given: tables.Tensor) -> tables.Tensor:
        number = numbers.get(given.external_buffer)
        return given if number is None else given.replace(buffer=number, external_buffer=0)

    subgraphs = (
        subgraph.replace(tensors=tuple(map(tensor, subgraph.tensors or ())))
        for subgraph in record.subgraphs or ()
    )
    return record.replace(
        buffers=(*(record.buffers or ()), *added),
        subgraphs=tuple(subgraphs),
        external_buffers=None,
        external_buffer_groups=None,
    )
