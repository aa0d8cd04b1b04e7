"""Summary of a bundle: its sections, and the facts about them in the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from delegraph.bundles.bundle import Bundle, Section
from delegraph.json_records import JsonRecord


@dataclass(frozen=True, slots=True)
class SectionSummary:
    """Summary of a section of a bundle.

    Attributes:
        index: number of the section, from 0.
        name: name of a member of a zip; empty in other bundles.
        type: type of the section, such as ``TFLiteModel``.
        bytes: number of decompressed bytes.
        begin: byte offset in the bundle at which it begins.
        is_packed: whether it is compressed, and so cannot be mapped into memory.
        items: facts about the section, by key; None for a value of unknown type.
    """

    index: int
    name: str
    type: str
    bytes: int
    begin: int
    is_packed: bool
    items: dict[str, Any]


@dataclass(frozen=True, slots=True)
class BundleSummary(JsonRecord):
    """Summary of a bundle.

    Attributes:
        format: ``zip`` or ``LiteRT-LM``.
        version: version of the format; empty if the format has no versions.
        bytes: number of bytes of the bundle.
        metadata: facts about the bundle, by key; None for a value of unknown type.
        sections: all sections.
    """

    format: str
    version: str
    bytes: int
    metadata: dict[str, Any]
    sections: tuple[SectionSummary, ...]


def summarize_bundle(bundle: Bundle) -> BundleSummary:
    """Return the summary of a bundle, without decompressing any section."""
    return BundleSummary(
        bundle.format,
        bundle.version,
        len(bundle.content),
        dict(bundle.metadata),
        tuple(map(_section, bundle.sections)),
    )


def _section(section: Section) -> SectionSummary:
    return SectionSummary(
        section.index,
        section.name,
        section.type,
        section.bytes,
        section.begin,
        section.packed is not None,
        dict(section.items),
    )
