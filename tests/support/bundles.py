"""Bundles of any shape, broken ones included, and small models to put into them."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from delegraph.schema import litertlm as tables
from delegraph.schema.writer import write_root

MODELS = Path(__file__).parents[2] / "docs" / "demo" / "models"
INT8 = (MODELS / "digits_int8.tflite").read_bytes()
FLOAT = (MODELS / "digits_float.tflite").read_bytes()

BLOCK = 16_384
GENERIC, MODEL, HF_TOKENIZER, WEIGHTS = 1, 3, 6, 7
"""Types of sections of a ``.litertlm`` file."""


def zipped(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """Return a zip file of *members*, all compressed by one method."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, method)
    return stream.getvalue()


def facts(**items: str) -> tuple[tables.KeyValuePair, ...]:
    """Return key-value pairs, as a ``.litertlm`` header has them."""
    return tuple(
        tables.KeyValuePair(key=key, value=tables.StringValue(value=value))
        for key, value in items.items()
    )


def litertlm(
    sections: Sequence[tuple[int, bytes, str]],
    places: Iterable[tuple[int, int]] | None = None,
    *,
    header_end: int | None = None,
    major: int = 1,
    system: tuple[tables.KeyValuePair, ...] = (),
) -> bytes:
    """Return a ``.litertlm`` file.

    Args:
        sections: type, content and ``model_type`` (empty: none) of each section.
        places: begin and end that the header gives the sections; None for the true ones.
        header_end: what the file says of it; None for the truth.
        major: version.
        system: facts about the file.
    """
    true, at = [], BLOCK
    for _, content, _ in sections:
        true.append((at, at + len(content)))
        at += -(-len(content) // BLOCK) * BLOCK
    objects = tuple(
        tables.SectionObject(
            items=facts(model_type=model_type) if model_type else (),
            begin_offset=begin,
            end_offset=end,
            data_type=kind,
        )
        for (kind, _, model_type), (begin, end) in zip(sections, places or true, strict=True)
    )
    root = tables.LiteRTLMMetaData(
        system_metadata=tables.SystemMetadata(entries=system),
        section_metadata=tables.SectionMetadata(objects=objects),
    )
    header = write_root(root, b"none")
    end = 32 + len(header) if header_end is None else header_end
    content = bytearray(struct.pack("<8s3I4xQ", b"LITERTLM", major, 0, 0, end) + header)
    for (_, part, _), (begin, _) in zip(sections, true, strict=True):
        content += bytes(max(0, begin - len(content))) + part
    return bytes(content)


def file_of(folder: Path, content: bytes, name: str = "bundle.task") -> Path:
    """Write a file and return its path."""
    path = folder / name
    path.write_bytes(content)
    return path


def entry(archive: bytes, name: str, **changes: Any) -> bytes:
    """Return a zip file with altered fields in one entry of its directory.

    Args:
        archive: the zip.
        name: the entry.
        changes: new values by field: ``method``, ``crc``, ``packed``, ``size``, ``at``.
    """
    offsets = {"method": (10, "<H"), "crc": (16, "<I"), "packed": (20, "<I"), "size": (24, "<I")}
    offsets["at"] = (42, "<I")
    content, found = bytearray(archive), archive.rfind(b"PK\x01\x02")
    while archive[found + 46 : found + 46 + len(name)] != name.encode():
        found = archive.rfind(b"PK\x01\x02", 0, found)
    for field, value in changes.items():
        offset, form = offsets[field]
        struct.pack_into(form, content, found + offset, value)
    return bytes(content)
