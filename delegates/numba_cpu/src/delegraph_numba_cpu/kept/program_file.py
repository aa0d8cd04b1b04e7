"""Format of kept programs: a flat file of little-endian tables, and constants for use in place.

=========== ==========================================================================
part        content
=========== ==========================================================================
header      :data:`HEADER`: magic, version, counts, digests
names       ``family kernel`` of each instruction, a line each, ASCII
memories    :data:`MEMORY`: each piece of memory, with its kind and place
rows        :data:`ROW`: each kernel call, in order
word kinds  int32 for each word: the memory that it points into, -1 for a number
word values int64 for each word: the offset in that memory, or the number
nodes       int32: indices of the nodes of all rows, row by row
shared      :data:`SHARED_CONSTANT`: each constant that lies elsewhere, see below
constants   from a page on, each at a multiple of 64 bytes, with zeros after it
=========== ==========================================================================

The words of all rows come first, row by row, then those of all records, memory by memory. Each part
but the last begins at a multiple of 8 bytes. ``digest`` is the SHA-256 of everything before the
constants, except the digest itself. ``sums`` is the SHA-256 of the sums of rows and columns of the
constants. For this, constants are seen as 64-bit words in rows of one page, so damage is found at
the speed of memory. Neither digest prevents a forged file: ``reading.py`` checks what a program may
do.

In a model file, programs of several levels and numbers of threads have most constants in common.
Those of :data:`LEAST_SHARED` bytes and more lie in entries of their own there, whole pages each,
which programs name by their SHA-256.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.delegation import sha256

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]

MAGIC = b"DGNUMBA\0"

VERSION = 2
"""Version of the format; files of other versions are made again."""

PAGE = 4096

LEAST_SHARED = 4096
"""Least number of bytes of a constant in a model file that programs share."""

LINE = 64
"""Alignment of constants in bytes."""

HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("version", "<u4"),
        ("names", "<u4"),  # bytes of the names
        ("memories", "<u8"),
        ("rows", "<u8"),
        ("words", "<u8"),
        ("nodes", "<u8"),
        ("shared", "<u8"),
        ("constants", "<u8"),  # bytes
        ("working", "<u8"),  # bytes of working memory
        ("workers", "<u8"),
        ("key", "V32"),
        ("sums", "V32"),
        ("digest", "V32"),
    ]
)

CONSTANT, MODEL, BORDER, WORKING, REPORT, SHARED, TABLE = range(7)
"""Kinds of memory: constants in the file; copies of constants of the model; tensors; working
memory; the report; constants that programs share; constants of the model in their own place.
"""

SHARED_CONSTANT = np.dtype([("name", "V32"), ("sums", "V32")])

MEMORY = np.dtype(
    [
        ("kind", "<i4"),
        ("instruction", "<i4"),  # instruction whose words its records have; -1 for no records
        ("size", "<i8"),
        ("place", "<i8"),  # offset among constants or in working memory; or a number: see below
        ("records", "<i8"),
    ]
)
"""Fields of a piece of memory in the file.

``place`` of a tensor is the tensor's index, and of a shared constant its position in ``shared``.
"""

ROW = np.dtype([("instruction", "<i4"), ("nodes", "<i4"), ("tiles", "<i8")])


class UnfitFile(Exception):
    """Error: a file is damaged, forged, old, or of another program; the message says which."""


def digest_of(structure: Bytes) -> bytes:
    """Return the digest of everything before the constants, except of the digest itself.

    The file stores this digest.

    Args:
        structure: the bytes of the file before the constants.
    """
    start, end = digest_place()
    found = sha256(structure[:start].data)
    found.update(structure[end:].data)
    return found.digest()


def digest_place() -> tuple[int, int]:
    """Return the first byte of the digest in a file, and the byte after the digest."""
    assert HEADER.fields is not None
    dtype, start = HEADER.fields["digest"][:2]
    return start, start + dtype.itemsize


def sums_of(*pieces: Bytes) -> bytes:
    """Return a digest of the sums of rows and columns of constants, to find damaged constants.

    Args:
        pieces: the constants, one after the other; the sum of their sizes is a multiple of the page
            size.
    """
    columns, rows = np.zeros(PAGE // 8, "<u8"), [np.zeros(0, "<u8")]
    for words in _pages(pieces):
        columns += words.sum(0, dtype="<u8")
        rows.append(words.sum(1, dtype="<u8"))
    found = sha256(columns.tobytes())
    found.update(np.concatenate(rows).tobytes())
    return found.digest()


def _pages(pieces: Iterable[Bytes]) -> Iterator[NDArray[np.uint64]]:
    """Yield the bytes of *pieces* as pages, ``[pages, 512], uint64``.

    A page across pieces is copied.
    """
    left = np.empty(0, np.uint8)
    for piece in pieces:
        rest = piece
        if len(left):
            taken = min(PAGE - len(left), len(piece))
            left, rest = np.concatenate([left, piece[:taken]]), piece[taken:]
            if len(left) < PAGE:
                continue
            yield left.view("<u8").reshape(1, -1)
        whole = len(rest) // PAGE * PAGE
        yield rest[:whole].view("<u8").reshape(-1, PAGE // 8)
        left = rest[whole:]


def parts_of(header: Any) -> list[tuple[str, Any, int]]:
    """Return name, dtype and length of each table between the header and the constants of a file.

    Args:
        header: a record of :data:`HEADER`.
    """
    return [
        ("names", np.dtype("u1"), int(header["names"])),
        ("memories", MEMORY, int(header["memories"])),
        ("rows", ROW, int(header["rows"])),
        ("kinds", np.dtype("<i4"), int(header["words"])),
        ("values", np.dtype("<i8"), int(header["words"])),
        ("nodes", np.dtype("<i4"), int(header["nodes"])),
        ("shared", SHARED_CONSTANT, int(header["shared"])),
    ]


IS_USABLE = sys.byteorder == "little"
"""Whether this machine's byte order is that of the tables, so that they can be used in place."""
