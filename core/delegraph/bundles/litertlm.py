"""The ``.litertlm`` format: a header that lists sections, aligned to 16,384 bytes.

Source:
    schema/core/litertlm_header.h and litertlm_read.cc of LiteRT-LM.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.bundles.bundle import LITERTLM, MAX_SECTIONS, MODEL, Bundle, Packed, Section, kind_of
from delegraph.errors import MalformedModelError
from delegraph.schema.flatbuffer import Flatbuffer, Rows
from delegraph.schema.litertlm import KeyValuePair, LiteRTLMMetaData, SectionObject
from delegraph.schema.reader import read_root

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK = 16_384
"""Alignment of sections in bytes."""

WEIGHTS = "TFLiteWeights"
"""Type of a section with constants for the model of the same ``model_type``."""

MAJOR_VERSION = 1

HEADER_BEGIN = 32
"""Offset in bytes of the header's flatbuffer."""

MAX_HEADER = 1 << 20
"""Largest number of bytes of the header."""

_HEAD = struct.Struct("<8s3I4xQ")

_TYPES = (
    "NONE",
    "GenericBinaryData",
    "Deprecated",
    MODEL,
    "SP_Tokenizer",
    "LlmMetadataProto",
    "HF_Tokenizer_Zlib",
    WEIGHTS,
    "EmbeddingMetadataProto",
    "ExecutorMetadataProto",
    "TtsMetadataProto",
    "AsrMetadataProto",
)
_ZLIB_TOKENIZER = "HF_Tokenizer_Zlib"
_LOOKED_INTO = ("NONE", "GenericBinaryData", MODEL)
"""Section types that do not determine the format; the section's first bytes determine it."""


def read_litertlm(content: NDArray[np.uint8]) -> Bundle:
    """Return *content*, the bytes of a ``.litertlm`` file, as a bundle.

    Raises:
        MalformedModelError: the header is damaged or of another major version, or there are too
            many sections. A section overlaps the header or another section, or ends after the file.
    """
    header, version = _header(content)
    record = read_root(LiteRTLMMetaData, header, MAX_HEADER // 16)
    system, listed = record.system_metadata, record.section_metadata
    objects = listed.objects if listed is not None else ()
    if len(objects) > MAX_SECTIONS:
        raise MalformedModelError(f"{len(objects)} sections, more than {MAX_SECTIONS}")
    _require_apart(objects, HEADER_BEGIN + len(header), len(content))
    sections = tuple(_section(content, *each) for each in enumerate(objects))
    facts = _facts(system.entries if system is not None else ())
    return Bundle(LITERTLM, content, sections, version, facts)


def _header(content: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], str]:
    """Return header flatbuffer and format version of the ``.litertlm`` file *content*."""
    if len(content) < HEADER_BEGIN:
        raise MalformedModelError(f"a LiteRT-LM bundle of {len(content)} bytes has no header")
    _, major, minor, patch, end = _HEAD.unpack_from(content.data)
    version = f"{major}.{minor}.{patch}"
    if major != MAJOR_VERSION:
        raise MalformedModelError(
            f"a LiteRT-LM bundle of version {version}, expected {MAJOR_VERSION}"
        )
    if not HEADER_BEGIN < end <= len(content):
        raise MalformedModelError(
            f"the header ends at byte {end}, expected {HEADER_BEGIN + 1} to {len(content)}"
        )
    if end - HEADER_BEGIN > MAX_HEADER:
        raise MalformedModelError(f"the header ends at byte {end}, more than {MAX_HEADER}")
    return content[HEADER_BEGIN:end], version


def _require_apart(objects: Iterable[SectionObject], header_end: int, size: int) -> None:
    """Check that sections lie after the header, inside the file, and do not overlap.

    Raises:
        MalformedModelError: a section lies elsewhere, or two overlap.
    """
    places = [(each.begin_offset, each.end_offset, index) for index, each in enumerate(objects)]
    for begin, end, index in places:
        if not header_end <= begin <= end <= size:
            raise MalformedModelError(
                f"section {index} is bytes {begin} to {end}, expected a place in {header_end} to "
                f"{size}"
            )
    for (_, end, first), (begin, _, second) in pairwise(sorted(places)):
        if begin < end:
            raise MalformedModelError(f"sections {first} and {second} overlap")


def _section(content: NDArray[np.uint8], index: int, record: SectionObject) -> Section:
    begin, end, items = record.begin_offset, record.end_offset, _facts(record.items)
    known = record.data_type < len(_TYPES)
    kind = _TYPES[record.data_type] if known else f"type {record.data_type}"
    packed = None
    if kind == _ZLIB_TOKENIZER and end - begin >= 8:
        (size,) = struct.unpack_from("<Q", content.data, begin)
        packed, begin = Packed(size, zlib.MAX_WBITS), begin + 8
    elif kind in _LOOKED_INTO or not known:
        kind = kind_of(content[begin : min(end, begin + 8)].tobytes()) or kind
    return Section(index, "", kind, begin, end, items, packed)


def _facts(pairs: Iterable[KeyValuePair]) -> dict[str, Any]:
    """Return a mapping from the keys of *pairs* to their values; None for unknown types."""
    return {each.key or "": None if each.value is None else each.value[0] for each in pairs}


def offset_positions(content: NDArray[np.uint8]) -> list[tuple[int, int]]:
    """Return the positions in *content* of each section's stored begin and end offsets.

    Raises:
        MalformedModelError: the file does not store the position of a section.
    """
    header, _ = _header(content)
    file, root = Flatbuffer(header), np.zeros(1, np.int64)
    listed = Rows(file, file.follow(root, "header"), 2, "LiteRTLMMetaData").field(1)
    if listed is None:
        return []
    vector = Rows(file, file.follow(listed, "sections"), 1, "SectionMetadata").field(0)
    if vector is None:
        return []
    starts, lengths = file.vectors(vector, 4, "sections")
    slots = starts[0] + 4 * np.arange(int(lengths[0]))
    rows = Rows(file, file.follow(slots, "sections"), 3, "SectionObject")
    begins, ends = rows.field(1), rows.field(2)
    if begins is None or ends is None or not (begins.all() and ends.all()):
        raise MalformedModelError("a section has no place in the file")
    places = zip(begins.tolist(), ends.tolist(), strict=True)
    return [(HEADER_BEGIN + begin, HEADER_BEGIN + end) for begin, end in places]
