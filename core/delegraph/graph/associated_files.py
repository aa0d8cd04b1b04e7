"""The zip archive of files that may follow a model, such as labels and vocabularies.

The zip is untrusted, like the model: only a limited part of it is read, no file is ever written,
and only stored and deflated files are read.

Source:
    ``ModelMetadataExtractor::ExtractAssociatedFiles``,
    tensorflow_lite_support/metadata/cc/metadata_extractor.cc.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from delegraph.bundles.zip_archive import DAMAGE
from delegraph.errors import MalformedModelError
from delegraph.graph.model_entries import PREFIX

MAX_BYTES = 1 << 20
"""Largest number of bytes of a file, and of the zip's list of files."""

MAX_READ = 4 * MAX_BYTES
"""Largest number of bytes that are read from all files of a zip together."""

MAX_ZIP = 64 << 20
"""Number of bytes at the end of the model in which a zip is searched."""

_NAMES_TOLD = 5

_END = b"PK\x05\x06"
_END_BYTES = 22  # without the comment
_ZIP64_LOCATOR = b"PK\x06\x07"
_ZIP64_LOCATOR_BYTES = 20
_MAX_COMMENT = 0xFFFF
_READABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class AssociatedFiles:
    """Files of the zip archive that may follow the model in a ``.tflite`` file.

    Args:
        content: the model's file, ``[bytes], uint8``.

    Attributes:
        sizes: number of bytes of each file, by name; empty if no zip follows the model. Delegates'
            entries are not included; see :mod:`delegraph.graph.model_entries`.
        model_bytes: number of bytes of the model before the zip.

    Raises:
        MalformedModelError: the zip is damaged or too large.
    """

    def __init__(self, content: NDArray[np.uint8]) -> None:
        start, self._zip = _open(content)
        self._left = MAX_READ
        listed = [] if self._zip is None else self._zip.infolist()
        entries = [entry for entry in listed if not entry.filename.startswith(PREFIX)]
        self._entries = {entry.filename: entry for entry in entries}
        self.sizes: Mapping[str, int] = {e.filename: e.file_size for e in entries}
        places = (start + entry.header_offset for entry in listed)
        self.model_bytes = min(places, default=len(content))

    def read(self, name: str) -> bytes:
        """Return the bytes of the associated file *name*.

        Raises:
            MalformedModelError: the file does not exist, is too large or damaged, or is compressed
                in another way.
        """
        if self._zip is None:
            raise MalformedModelError(f"no zip with {name!r} follows the model")
        if name not in self._entries:
            held = ", ".join(map(repr, sorted(self._entries)[:_NAMES_TOLD])) or "no files"
            raise MalformedModelError(f"the zip after the model has no {name!r}; it has {held}")
        entry = self._entries[name]
        if entry.flag_bits & 1 or entry.compress_type not in _READABLE:
            raise MalformedModelError(
                f"{name!r} of the zip after the model is encrypted or packed in an unknown way"
            )
        try:
            with self._zip.open(entry) as file:
                content = file.read(min(MAX_BYTES, self._left) + 1)
        except DAMAGE as error:
            raise _damaged(error) from error
        if len(content) > MAX_BYTES:
            raise MalformedModelError(
                f"{name!r} of the zip after the model has more than {MAX_BYTES} bytes"
            )
        if len(content) > self._left:
            raise MalformedModelError(
                f"the files of the zip after the model have more than {MAX_READ} bytes together"
            )
        self._left -= len(content)
        return content


def with_associated_files(model: bytes, source: NDArray[np.uint8]) -> bytes:
    """Return the bytes of *model* followed by the associated files of *source*.

    Args:
        model: bytes of a model without associated files; it may have entries.
        source: ``[bytes], uint8`` of a model that may have associated files.

    Raises:
        MalformedModelError: the zip of *source* is damaged or too large.
    """
    files = AssociatedFiles(source)
    if not files.sizes:
        return model
    stream = io.BytesIO(model)
    with zipfile.ZipFile(stream, "a") as archive:
        for name in files.sizes:
            # No time stamp, so that equal contents give equal bytes.
            archive.writestr(zipfile.ZipInfo(name), files.read(name))
    return stream.getvalue()


def _open(content: NDArray[np.uint8]) -> tuple[int, zipfile.ZipFile | None]:
    """Return an offset in *content*, and the zip archive that was read from the bytes there.

    Offsets in the archive count from that offset. If *content* does not end with a zip, the results
    are 0 and None.
    """
    tail = content[-(_MAX_COMMENT + _END_BYTES + _ZIP64_LOCATOR_BYTES) :].tobytes()
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_BYTES:
        return 0, None
    list_bytes = struct.unpack_from("<I", tail, at + 12)[0]
    locator = tail[max(0, at - _ZIP64_LOCATOR_BYTES) :]
    if list_bytes > MAX_BYTES or locator.startswith(_ZIP64_LOCATOR):
        raise MalformedModelError("the zip after the model has too many files")
    end = len(content) - len(tail) + at + _END_BYTES
    # Without its comment, the record found here is the last one, so zipfile finds it, too.
    start = max(0, end - MAX_ZIP)
    packed = content[start : end - 2].tobytes() + b"\0\0"
    try:
        return start, zipfile.ZipFile(io.BytesIO(packed))
    except DAMAGE as error:
        raise _damaged(error) from error


def _damaged(error: Exception) -> MalformedModelError:
    return MalformedModelError(f"the zip after the model is damaged: {error}")
