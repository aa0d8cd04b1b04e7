"""``Bundle``, a file that contains models, and ``Section``, a part of it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.errors import MalformedModelError, SectionError
from delegraph.schema.reader import FILE_IDENTIFIER

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph.schema.read_limit import ReadLimit

MAX_SECTIONS = 4096
"""Largest number of sections of a bundle; known bundles have fewer than 50."""

MODEL, ZIP, LITERTLM = "TFLiteModel", "zip", "LiteRT-LM"
"""Types of the sections that are read: models, and bundles inside a bundle."""

_TOLD = 20
_SHOWN_CHARACTERS = 80
_CHUNK = 1 << 20
_PREFIX = "tf_lite_"


@dataclass(frozen=True, slots=True)
class Packed:
    """Size, format and checksum of a section's compressed bytes.

    Attributes:
        size: number of decompressed bytes.
        window: ``wbits`` of ``zlib``, which describes the header and trailer around the deflated
            bytes.
        crc: CRC-32 of the decompressed bytes; None if unknown.
        obstacle: text that says why the bytes cannot be decompressed; empty if they can.
    """

    size: int
    window: int
    crc: int | None = None
    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a bundle.

    Attributes:
        index: number of the section in the bundle, from 0.
        name: name of a member of a zip; empty in other bundles.
        type: ``TFLiteModel``, ``zip`` or ``LiteRT-LM`` by the first bytes; for other sections the
            type that the bundle declares.
        begin: offset of the first byte in the bundle.
        end: offset of the byte after the section's last byte.
        items: facts about the section, by key.
        packed: form of the compressed bytes; None if the section is not compressed.
    """

    index: int
    name: str
    type: str
    begin: int
    end: int
    items: Mapping[str, Any] = field(default_factory=dict)
    packed: Packed | None = None

    @property
    def model_type(self) -> str:
        """The section's item ``model_type``; empty if it has none."""
        found = self.items.get("model_type")
        return found if isinstance(found, str) else ""

    @property
    def address(self) -> str:
        """Text after the ``#`` in the address of this section: its name, or its number."""
        return self.name or self.model_type or str(self.index)

    @property
    def is_bundle(self) -> bool:
        """Whether the section is itself a bundle."""
        return self.type in (ZIP, LITERTLM)

    @property
    def bytes(self) -> int:
        """Number of decompressed bytes of the section."""
        return self.end - self.begin if self.packed is None else self.packed.size

    def __str__(self) -> str:
        name = (self.name or self.model_type)[:_SHOWN_CHARACTERS]
        return f"{self.index} ({', '.join(filter(None, (name, self.type)))})"


@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """A file, or a section of a file, that contains models.

    Attributes:
        format: ``zip``, ``LiteRT-LM``, or ``TFLiteModel`` for a model with files after it.
        content: ``[bytes], uint8``.
        sections: all sections, in the bundle's order.
        version: version of the format; empty if the format has no versions.
        metadata: facts about the whole bundle, by key.
    """

    format: str
    content: NDArray[np.uint8]
    sections: tuple[Section, ...]
    version: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def part(self, section: Section, limit: ReadLimit) -> NDArray[np.uint8]:
        """Return the bytes of a section: a view of the bundle, or decompressed bytes.

        Raises:
            MalformedModelError: the section is damaged, or larger than *limit* allows.
        """
        stored = self.content[section.begin : section.end]
        if section.packed is None:
            return stored
        return inflated(stored, section.packed, limit, f"section {section}")

    def named(self, word: str) -> Section | None:
        """Return the section that *word* names; None if there is none.

        Args:
            word: a member's name, the ``model_type`` of a model, or a section's number.

        Raises:
            SectionError: *word* names several sections.
        """
        found = [section for section in self.sections if section.name and section.name == word]
        if not found:
            models = [s for s in self.sections if s.type == MODEL and s.model_type]
            found = [s for s in models if _plain(s.model_type) == _plain(word)]
        if len(found) > 1:
            numbers = ", ".join(str(section.index) for section in found)
            raise SectionError(f"{word!r} names sections {numbers}; give the number of one")
        if found:
            return found[0]
        is_number = word.isascii() and word.isdigit() and len(word) < 9
        if is_number and int(word) < len(self.sections):
            return self.sections[int(word)]
        return None

    def told(self) -> str:
        """Text that lists all sections of the bundle, for error messages."""
        told = ", ".join(map(str, self.sections[:_TOLD])) or "none"
        return told + ", ..." * (len(self.sections) > _TOLD)


def _plain(model_type: str) -> str:
    """Return a model type without the prefix ``TF_LITE_``, which newer files omit.

    >>> _plain("TF_LITE_EMBEDDER"), _plain("embedder")
    ('embedder', 'embedder')
    """
    return model_type.lower().removeprefix(_PREFIX)


def kind_of(head: bytes) -> str:
    """Return the type of a section or file by *head*, its first bytes; empty if unknown."""
    if head[4:8] == FILE_IDENTIFIER:
        return MODEL
    if head.startswith(b"LITERTLM"):
        return LITERTLM
    return ZIP if head.startswith((b"PK\x03\x04", b"PK\x05\x06")) else ""


def inflated(
    stored: NDArray[np.uint8], packed: Packed, limit: ReadLimit, what: str
) -> NDArray[np.uint8]:
    """Return the bytes *stored*, decompressed: ``[bytes], uint8``, as many as *packed* says.

    *what* names the bytes in errors.

    Raises:
        MalformedModelError: the bytes are damaged, more than *packed* says, or more than *limit*
            allows.
    """
    if packed.obstacle:
        raise MalformedModelError(f"{what}: {packed.obstacle}")
    limit.take(packed.size, what)
    inflating, at = zlib.decompressobj(packed.window), 0
    content = np.empty(packed.size, np.uint8)
    try:
        for begin in range(0, len(stored), _CHUNK):
            left: bytes | memoryview = stored[begin : begin + _CHUNK].data
            while len(left) and not inflating.eof:
                piece = inflating.decompress(left, _CHUNK)
                left = inflating.unconsumed_tail
                if len(piece) > len(content) - at:
                    raise MalformedModelError(f"{what} has more than its {packed.size} bytes")
                content[at : at + len(piece)] = np.frombuffer(piece, np.uint8)
                at += len(piece)
    except zlib.error as error:
        raise MalformedModelError(f"{what} is damaged: {error}") from error
    if at < len(content) or not inflating.eof:
        raise MalformedModelError(f"{what} is cut off: {at} of {packed.size} bytes")
    if packed.crc is not None and zlib.crc32(content.data) != packed.crc:
        raise MalformedModelError(f"{what} is damaged: its checksum differs")
    content.flags.writeable = False
    return content
