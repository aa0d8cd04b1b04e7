"""Zip archives as bundles: MediaPipe's ``.task`` files, other zips, and files after a model.

``zipfile`` reads the list of files. A member's position comes from its local header, which must
agree with the list; members must neither overlap nor exceed the archive.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from itertools import pairwise
from typing import TYPE_CHECKING

from delegraph.bundles.bundle import (
    MAX_SECTIONS,
    MODEL,
    ZIP,
    Bundle,
    Packed,
    Section,
    kind_of,
)
from delegraph.errors import MalformedModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_LIST = 1 << 20
"""Largest number of bytes of the list of files."""

DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    RuntimeError,  # NotImplementedError: an unknown version or flag
    ValueError,
)
"""Errors that zipfile raises for a damaged zip."""

LOCAL_HEADER = struct.Struct("<4s5H3I2H")
"""Local header: signature, version, flags, method, time, date, CRC, sizes, lengths of names."""

_SIGNATURE = b"PK\x03\x04"
_IS_ENCRYPTED, _IS_UTF8 = 1, 0x800
_ROLES = {"METADATA": "metadata", "TOKENIZER_MODEL": "tokenizer"}
"""Types of files without suffix in ``.task`` files of language models, by name."""


class _Reading:
    """A readable file object on memory, for ``zipfile``, with a limit on the list of files."""

    def __init__(self, content: NDArray[np.uint8]) -> None:
        self._content = content
        self._at = 0

    def seekable(self) -> bool:
        """Whether ``seek`` works."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move to a byte offset from the start (0), the present position (1) or the end (2)."""
        at = (0, self._at, len(self._content))[whence] + offset
        if at < 0:
            raise ValueError("a place before the start")
        self._at = at
        return at

    def tell(self) -> int:
        """Return the present position."""
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """Return the next *size* bytes; all remaining bytes if *size* is negative or None."""
        rest = max(0, len(self._content) - self._at)
        size = rest if size is None or size < 0 else min(size, rest)
        if size > MAX_LIST:
            raise zipfile.BadZipFile(f"its list of files takes {size} bytes")
        found = self._content[self._at : self._at + size].tobytes()
        self._at += size
        return found


def read_directory(content: NDArray[np.uint8]) -> tuple[list[zipfile.ZipInfo], int]:
    """Return the entries in the directory of the archive *content*, and the directory's position.

    Raises:
        MalformedModelError: the archive is damaged, or has too many files.
    """
    try:
        archive = zipfile.ZipFile(_Reading(content))
    except DAMAGE as error:
        raise MalformedModelError(f"the zip is damaged: {error}") from error
    entries = archive.infolist()
    if len(entries) > MAX_SECTIONS:
        raise MalformedModelError(f"the zip has {len(entries)} files, more than {MAX_SECTIONS}")
    return entries, archive.start_dir


def read_zip(content: NDArray[np.uint8]) -> Bundle:
    """Return the archive *content* as a bundle; a model before the archive is its first section.

    Raises:
        MalformedModelError: the archive is damaged or has too many files, or a file has an invalid
            position or name.
    """
    entries, end = read_directory(content)
    model = kind_of(content[:8].tobytes()) == MODEL
    places = [_place(content, entry, end) for entry in entries]
    spans = sorted(
        (entry.header_offset, last, entry.filename)
        for entry, (_, last) in zip(entries, places, strict=True)
    )
    for (_, last, name), (head, _, other) in pairwise(spans):
        if head < last:
            raise MalformedModelError(f"the files {name!r} and {other!r} of the zip overlap")
    sections = [Section(0, "", MODEL, 0, len(content))] if model else []
    for entry, (begin, last) in zip(entries, places, strict=True):
        _require_plain_name(entry.filename)
        sections.append(_section(content, len(sections), entry, begin, last))
    return Bundle(MODEL if model else ZIP, content, tuple(sections))


def _place(content: NDArray[np.uint8], entry: zipfile.ZipInfo, end: int) -> tuple[int, int]:
    """Return the begin and end offsets in *content* of the data of the member *entry*.

    *end* is the offset at which the members' data must have ended. Raises: MalformedModelError: the
    member lies elsewhere, or its header is that of another file.
    """
    at, what = entry.header_offset, f"{entry.filename!r} of the zip"
    if not 0 <= at <= end - LOCAL_HEADER.size:
        raise MalformedModelError(f"{what} begins at byte {at}, outside of the zip")
    signature, _, flags, method, _, _, _, _, _, name_bytes, more = LOCAL_HEADER.unpack_from(
        content.data, at
    )
    name_at = at + LOCAL_HEADER.size
    begin = name_at + name_bytes + more
    raw = content[name_at : name_at + name_bytes].tobytes()
    name = raw.decode("utf-8" if flags & _IS_UTF8 else "cp437", "replace")
    if signature != _SIGNATURE or name != entry.orig_filename or method != entry.compress_type:
        raise MalformedModelError(
            f"{what} has the header of another file at byte {at}, its beginning"
        )
    if begin + entry.compress_size > end:
        raise MalformedModelError(f"{what} runs past the end of the zip's files")
    if method == zipfile.ZIP_STORED and entry.compress_size != entry.file_size:
        raise MalformedModelError(f"{what} is stored uncompressed, and its two sizes differ")
    return begin, begin + entry.compress_size


def _require_plain_name(name: str) -> None:
    parts = re.split(r"[/\\]", name)
    if not name or ".." in parts or not parts[0] or re.match("[A-Za-z]:", name):
        raise MalformedModelError(f"the zip has a file {name!r}, which is no name inside of a zip")


def _section(
    content: NDArray[np.uint8], index: int, entry: zipfile.ZipInfo, begin: int, end: int
) -> Section:
    packed, head = None, content[begin : min(end, begin + 8)].tobytes()
    if entry.flag_bits & _IS_ENCRYPTED or entry.compress_type != zipfile.ZIP_STORED:
        packed = _packed(entry)
        head = b"" if packed.obstacle else _inflated_head(content[begin:end])
    kind = kind_of(head) or _ROLES.get(entry.filename, "file")
    return Section(index, entry.filename, kind, begin, end, packed=packed)


def _packed(entry: zipfile.ZipInfo) -> Packed:
    obstacle = ""
    if entry.flag_bits & _IS_ENCRYPTED:
        obstacle = "is encrypted"
    elif entry.compress_type != zipfile.ZIP_DEFLATED:
        obstacle = f"is packed in an unknown way ({entry.compress_type})"
    return Packed(entry.file_size, -zlib.MAX_WBITS, entry.CRC, obstacle)


def _inflated_head(stored: NDArray[np.uint8]) -> bytes:
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(stored[:4096].data, 8)
    except zlib.error:
        return b""
