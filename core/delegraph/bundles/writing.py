"""Writes bundles in which one model is replaced and all other sections are unchanged."""

from __future__ import annotations

import mmap
import struct
import zipfile
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from delegraph.bundles.bundle import LITERTLM, ZIP, Bundle, Section
from delegraph.bundles.litertlm import BLOCK, offset_positions
from delegraph.bundles.zip_archive import LOCAL_HEADER, read_directory
from delegraph.errors import SectionError
from delegraph.schema.read_limit import ReadLimit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph.bundles.opening import Chain

MODEL_ALIGNMENT = 64
"""Smallest alignment in bytes of a replaced model in a zip."""

_MAX_ALIGNMENT = 4096
_ZIP64_BYTES = 20
_PADDING_ID = 0xD935  # the id that Android's zipalign uses


def write_bundle(stream: IO[bytes], chain: Chain, model: NDArray[np.uint8]) -> None:
    """Write the outermost bundle of *chain*, with *model* in place of the innermost section.

    Args:
        stream: a file that can be read, written and sought, at its start.
        chain: nested bundles, outermost first, each with the section that contains the next.
        model: bytes of a model, ``[bytes], uint8``.

    Raises:
        SectionError: the section is a file after a model.
        MalformedModelError: another section is damaged.
    """
    bundle, section = chain[0]
    if bundle.format not in (ZIP, LITERTLM):
        raise SectionError(f"section {section} stands after a model, and cannot be replaced there")
    write = _write_litertlm if bundle.format == LITERTLM else _write_zip
    if len(chain) == 1:
        write(stream, bundle, section, model)
        return
    with TemporaryFile() as inner:
        write_bundle(inner, chain[1:], model)
        inner.flush()
        mapped = mmap.mmap(inner.fileno(), 0, access=mmap.ACCESS_READ)
        write(stream, bundle, section, np.frombuffer(mapped, np.uint8))


def _write_litertlm(
    stream: IO[bytes], bundle: Bundle, replaced: Section, part: NDArray[np.uint8]
) -> None:
    """Write a ``.litertlm`` file; sections after the replaced one are moved by whole blocks."""
    content, positions = bundle.content, offset_positions(bundle.content)
    places = [tuple(_uint64(content, at) for at in pair) for pair in positions]
    order = sorted(range(len(places)), key=places.__getitem__)
    head = bytearray(content[: places[order[0]][0]].tobytes())
    parts, at, has_moved = [], 0, False
    for index in order:
        begin, end = places[index]
        section = part if index == replaced.index else content[begin:end]
        at = -(-at // BLOCK) * BLOCK if has_moved else begin
        parts.append((at, section))
        for position, value in zip(positions[index], (at, at + len(section)), strict=True):
            struct.pack_into("<Q", head, position, value)
        at += len(section)
        has_moved = has_moved or index == replaced.index
    stream.write(head)
    for at, section in parts:
        stream.write(bytes(at - stream.tell()))
        stream.write(section.data)


def _uint64(content: NDArray[np.uint8], at: int) -> int:
    return int(struct.unpack_from("<Q", content.data, at)[0])


def _write_zip(
    stream: IO[bytes], bundle: Bundle, replaced: Section, part: NDArray[np.uint8]
) -> None:
    """Write a zip file; members without compression remain so, with the same alignment."""
    limit = ReadLimit(len(bundle.content))
    entries, _ = read_directory(bundle.content)
    with zipfile.ZipFile(stream, "w") as archive:
        for entry, section in zip(entries, bundle.sections, strict=True):
            is_replaced = section.index == replaced.index
            content = part if is_replaced else bundle.part(section, limit)
            alignment = min(section.begin & -section.begin, _MAX_ALIGNMENT)
            info = _copied(entry)
            if is_replaced:
                info.compress_type = zipfile.ZIP_STORED
                alignment = max(alignment, MODEL_ALIGNMENT)
            info.file_size = len(content)
            is_large = len(content) * 1.05 > zipfile.ZIP64_LIMIT
            if info.compress_type == zipfile.ZIP_STORED:
                header = LOCAL_HEADER.size + len(info.filename.encode()) + _ZIP64_BYTES * is_large
                info.extra = _padding(stream.tell() + header, alignment)
            with archive.open(info, "w", force_zip64=is_large) as file:
                file.write(content.data)


def _copied(entry: zipfile.ZipInfo) -> zipfile.ZipInfo:
    info: Any = zipfile.ZipInfo(entry.filename, entry.date_time)
    for name in ("compress_type", "comment", "create_system", "internal_attr", "external_attr"):
        setattr(info, name, getattr(entry, name))
    return info  # type: ignore[no-any-return]  # Any, so that attributes can be set


def _padding(begin: int, alignment: int) -> bytes:
    """Return a zip extra field after which data begins at a multiple of *alignment*.

    *begin* is the offset of the data without the field. The field is empty if that is a multiple
    already.

    >>> len(_padding(64, 64)), len(_padding(62, 64)), len(_padding(60, 64))
    (0, 66, 4)
    """
    missing = -begin % alignment
    if 0 < missing < 4:  # a field's own id and length take four bytes
        missing += alignment if alignment >= 4 else 4
    return struct.pack("<2H", _PADDING_ID, missing - 4) + bytes(missing - 4) if missing else b""
