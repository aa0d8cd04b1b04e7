"""Addresses of models: ``FILE#SECTION``, and ``FILE#SECTION#SECTION`` for bundles in bundles.

A section is a member's name, the ``model_type`` of a model, or a number from 0. Without a section,
a bundle's address means its only model. Uncompressed sections are views of the file.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from delegraph.bundles.bundle import LITERTLM, MAX_SECTIONS, MODEL, ZIP, Bundle, Section, kind_of
from delegraph.errors import ExternalBufferError, MalformedModelError, SectionError
from delegraph.schema.read_limit import ReadLimit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_DEPTH = 6
"""Largest depth of nested bundles."""

_TOLD = 20
_ZIP_END = b"PK\x05\x06"
_ZIP_END_BYTES = 22 + 0xFFFF  # with the longest possible comment

Chain = tuple[tuple[Bundle, Section], ...]
"""Bundles from the file inwards, each with its section that is the next bundle or the model."""


def split_address(path: str) -> tuple[str, str | None]:
    """Return the file and the sections (None if absent) of an address ``FILE#SECTION``.

    The file is *path* if it exists. Otherwise it is the longest part before a ``#`` that is a file,
    since names may contain ``#``. If no part is a file, the file is *path*.
    """
    at = len(path)
    if not os.path.exists(path):
        while (at := path.rfind("#", 0, at)) > 0:
            if os.path.isfile(path[:at]):
                return path[:at], path[at + 1 :]
    return path, None


@dataclass(frozen=True, slots=True, eq=False)
class FoundModel:
    """A model found in a file, with the bundles around it.

    Attributes:
        content: bytes of the model, ``[bytes], uint8``.
        chain: the bundles that contain the model; empty if the file itself is the model.
        inflated: number of bytes that were decompressed to reach the model.
        limit: maximal number of decompressed bytes.
    """

    content: NDArray[np.uint8]
    chain: Chain
    inflated: int
    limit: ReadLimit

    def weights(self, name: str) -> NDArray[np.uint8]:
        """Return the content of external constants that are in the same bundle as the model.

        Args:
            name: name of the group; in a zip, the name of a member beside the model.

        Raises:
            ExternalBufferError: the bundle has no section with these constants, or several.
        """
        from delegraph.bundles.litertlm import WEIGHTS

        bundle, model = self.chain[-1]
        if bundle.format == LITERTLM:
            kind = model.model_type
            wanted = f"section {WEIGHTS} of model type {kind!r}"
            found = [s for s in bundle.sections if s.type == WEIGHTS and s.model_type == kind]
        else:
            member = posixpath.join(posixpath.dirname(model.name), name)
            wanted = f"member {member!r}"
            found = [section for section in bundle.sections if section.name == member]
        if len(found) != 1:
            count = "no" if not found else f"{len(found)} times the"
            raise ExternalBufferError(
                f"external buffer group {name!r}: the bundle has {count} {wanted}"
            )
        return bundle.part(found[0], self.limit)


def find_model(
    content: NDArray[np.uint8], words: str | None, memory_limit: int | None = None
) -> FoundModel:
    """Return the model to which the sections *words* of an address lead.

    Args:
        content: the file, ``[bytes], uint8``.
        words: text after the first ``#`` of the address; None means the only model. With None, a
            file of unknown format is returned unchanged.
        memory_limit: maximal number of decompressed bytes; None means a limit that suits the file.

    Raises:
        MalformedModelError: a bundle is damaged, or the limit would be exceeded.
        SectionError: the section does not exist, or there is not exactly one model.
    """
    search = _Search(len(content), memory_limit)
    part, chain = search.follow(content, words)
    if kind_of(part[:8].tobytes()) in (ZIP, LITERTLM):
        part, chain = search.only_model(part, chain)
    elif chain and chain[-1][1].type != MODEL:
        bundle, section = chain[-1]
        raise SectionError(f"section {section} is no model; the bundle has {bundle.told()}")
    if chain and chain[-1][0].format == MODEL and len(chain[-1][0].content) == len(part):
        chain = chain[:-1]  # the model's own file is no other bundle
    return FoundModel(part, chain, search.inflated, search.limit)


def find_bundle(content: NDArray[np.uint8], words: str | None) -> Bundle | None:
    """Return the bundle in the file *content* to which the sections *words* of an address lead.

    *words* is the text after the first ``#`` of the address; None means the file itself. The result
    is None for a model or a file of another format, including a zip without models.
    """
    search = _Search(len(content), None)
    part, chain = search.follow(content, words)
    if kind_of(part[:8].tobytes()) not in (ZIP, LITERTLM):
        return None
    bundle = search.read(part, len(chain))
    holds = any(section.type == MODEL or section.is_bundle for section in bundle.sections)
    return bundle if holds or bundle.format == LITERTLM else None


class _Search:
    """Finds a model in nested bundles; limits the number of decompressed bytes and sections."""

    def __init__(self, file_bytes: int, memory_limit: int | None) -> None:
        self.limit = ReadLimit(file_bytes, memory_limit)
        self._granted = self.limit.bytes
        self._sections_left = MAX_SECTIONS

    @property
    def inflated(self) -> int:
        """Number of bytes decompressed so far."""
        return self._granted - self.limit.bytes

    def follow(
        self, content: NDArray[np.uint8], words: str | None
    ) -> tuple[NDArray[np.uint8], Chain]:
        """Return the part of *content* to which *words* lead, and the bundles around it."""
        chain: Chain = ()
        while words is not None:
            bundle = self.read(content, len(chain))
            section, words = _named(bundle, words)
            content = bundle.part(section, self.limit)
            chain = (*chain, (bundle, section))
        return content, chain

    def read(self, content: NDArray[np.uint8], depth: int) -> Bundle:
        """Return *content* as a bundle; *depth* is the number of bundles around it."""
        if depth >= MAX_DEPTH:
            raise MalformedModelError(f"more than {MAX_DEPTH} bundles within each other")
        kind = kind_of(content[:8].tobytes())
        if kind == LITERTLM:
            from delegraph.bundles.litertlm import read_litertlm

            bundle = read_litertlm(content)
        elif kind == ZIP or (kind == MODEL and _ZIP_END in content[-_ZIP_END_BYTES:].tobytes()):
            from delegraph.bundles.zip_archive import read_zip

            bundle = read_zip(content)
        else:
            what = "a model without files after it" if kind == MODEL else "no bundle"
            raise SectionError(f"there is no section: it is {what}")
        self._sections_left -= len(bundle.sections)
        if self._sections_left < 0:
            raise MalformedModelError(f"the bundles have more than {MAX_SECTIONS} sections")
        return bundle

    def only_model(
        self, content: NDArray[np.uint8], chain: Chain
    ) -> tuple[NDArray[np.uint8], Chain]:
        """Return the only model in the bundle *content* or in bundles inside it, and its bundles.

        *chain* are the bundles around *content*. If there are none, a zip without models is
        returned unchanged.

        Raises:
            SectionError: the bundle has no model, or several.
        """
        bundle = self.read(content, len(chain))
        models = list(self._models(bundle, chain))
        if not models:
            if not chain and bundle.format == ZIP:
                return content, chain  # a zip without models may be of another format
            raise SectionError(f"the bundle has no model; it has {bundle.told()}")
        if len(models) > 1:
            addresses = ["#".join(s.address for _, s in each[len(chain) :]) for each in models]
            more = ", ..." * (len(models) > _TOLD)
            told = ", ".join(addresses[:_TOLD])
            raise SectionError(
                f"the bundle has {len(models)} models, and FILE#SECTION chooses one: {told}{more}"
            )
        bundle, section = models[0][-1]
        return bundle.part(section, self.limit), models[0]

    def _models(self, bundle: Bundle, chain: Chain) -> Iterator[Chain]:
        for section in bundle.sections:
            link = (*chain, (bundle, section))
            if section.type == MODEL:
                yield link
            elif section.is_bundle:
                inner = self.read(bundle.part(section, self.limit), len(link))
                yield from self._models(inner, link)


def _named(bundle: Bundle, words: str) -> tuple[Section, str | None]:
    """Return the section that the start of *words* names, and the remaining words or None.

    *words* is the rest of the address, with ``#`` between sections.
    """
    at = len(words)
    while at >= 0:
        found = bundle.named(words[:at])
        if found is not None:
            return found, words[at + 1 :] if at < len(words) else None
        at = words.rfind("#", 0, at)
    raise SectionError(f"there is no section {words!r}; the bundle has {bundle.told()}")
