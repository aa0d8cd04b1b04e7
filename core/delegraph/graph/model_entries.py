"""Entries that delegates store in a model file: files in a zip archive after the model.

Each entry is named ``delegraph/...`` and begins at a multiple of 64 bytes, so that a delegate can
use it in the mapped file. The model before the zip is unchanged, so every runtime can run it. Keys
of entries contain the model's digest, so entries of another model are not found.

The zip is untrusted. If it is damaged or has another form, its entries count as missing.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from delegraph.errors import MalformedModelError
from delegraph.lazy_dataclass import dataclass
from delegraph.log import Logger

if TYPE_CHECKING:
    from numpy.typing import NDArray

logger = Logger(__name__)

PREFIX = "delegraph/"
"""Start of the names of entries."""

ALIGNMENT = 64
"""Alignment of entries in a model file, in bytes."""

MAX_LIST = 1 << 20
"""Largest number of bytes of the zip's list of files."""

MAX_FILE = (1 << 32) - 1
"""Largest number of bytes of a file with entries, since a zip has 32-bit offsets."""

_ALIGNMENT_FIELD = 0xD935
"""Number of the extra field of zip files that aligns data, as Android's zipalign writes it."""

_END = struct.Struct("<4s8xII2x")  # bytes of the list, its offset; without a comment
_LISTED = struct.Struct("<4s6xH8xIIHHH8xI")  # method, sizes, lengths, offset of the header
_HEADER = struct.Struct("<4s22xHH")  # lengths of the name and of the extra field


@dataclass(frozen=True, slots=True)
class EntryPlaces:
    """Positions of the entries in a model file.

    Attributes:
        model_bytes: number of bytes of the model before the zip.
        places: offset and length of each entry in bytes, by name without :data:`PREFIX`.
    """

    model_bytes: int
    places: Mapping[str, tuple[int, int]]


def find_entries(content: NDArray[Any]) -> EntryPlaces | None:
    """Return the positions of the entries in a model file; None if it has none.

    Args:
        content: the file, ``[bytes], uint8``.
    """
    tail = content[-_END.size :].tobytes()
    if not tail.startswith(b"PK\5\6"):  # as in all model files without a zip
        return None
    try:
        return _entries(content, tail)
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        logger.info("the zip after the model has no usable entries: %s", error)
        return None


def _entries(content: NDArray[Any], tail: bytes) -> EntryPlaces | None:
    _, size, start = _END.unpack(tail)
    end = len(content) - _END.size
    if start + size != end or size > MAX_LIST or tail[-2:] != b"\0\0":
        raise ValueError("its list of files is elsewhere")
    first, places = start, {}
    for name, place, length in _listed(content[start:end].tobytes()):
        first = min(first, place)
        if name.startswith(PREFIX):
            place = _data(content, place)
            if place + length > start:
                raise ValueError(f"{name!r} ends after the files")
            places[name[len(PREFIX) :]] = place, length
    return EntryPlaces(first, places) if places else None


def _listed(files: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield name, offset of the header and length of each file in *files*, a zip's list of files.

    Raises:
        ValueError: the list is damaged, or an entry of a delegate is compressed.
    """
    at = 0
    while at < len(files):
        mark, method, packed, length, name, extra, comment, place = _LISTED.unpack_from(files, at)
        begin = at + _LISTED.size
        at = begin + name + extra + comment
        if mark != b"PK\1\2" or at > len(files):
            raise ValueError("its list of files is damaged")
        text = files[begin : begin + name].decode()
        if text.startswith(PREFIX) and (method, packed) != (0, length):
            raise ValueError(f"{text!r} is compressed")
        yield text, place, length


def _data(content: NDArray[Any], place: int) -> int:
    """Return the offset in *content* of the data of the zip member whose header is at *place*."""
    name: int
    extra: int
    mark, name, extra = _HEADER.unpack(content[place : place + _HEADER.size].tobytes())
    if mark != b"PK\3\4":
        raise ValueError("a file of its list is not there")
    return place + _HEADER.size + name + extra


def with_entries(model: bytes, entries: Mapping[str, bytes]) -> bytes:
    """Return the bytes of *model* followed by a zip archive of *entries*.

    Args:
        model: bytes of a model, without anything after it.
        entries: content of each entry, by name without :data:`PREFIX`.

    Raises:
        MalformedModelError: the model and the entries are too large for a zip.
    """
    import zipfile  # lazy import: its import takes milliseconds, and only this writes

    total = len(model) + sum(map(len, entries.values()))
    if total + MAX_LIST > MAX_FILE:
        raise MalformedModelError(f"with its entries the file would have {total} bytes, over 4 GB")
    stream = io.BytesIO()
    stream.write(model)
    with zipfile.ZipFile(stream, "a") as archive:
        for name, content in sorted(entries.items()):
            # No time stamp, so that equal contents give equal bytes.
            described = zipfile.ZipInfo(PREFIX + name)
            used = stream.tell() + _HEADER.size + len(described.filename) + 4
            padding = -used % ALIGNMENT
            described.extra = struct.pack("<HH", _ALIGNMENT_FIELD, padding) + bytes(padding)
            archive.writestr(described, content)
    return stream.getvalue()
