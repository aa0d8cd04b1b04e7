"""Bounds-checked reading of flatbuffer primitives, for many places of the file at once.

Positions are byte offsets from the start of the file, ``[N], int64``. Nothing is assumed about
alignment: every primitive is read through a view whose stride is one byte.

Source:
    The encoding: https://flatbuffers.dev/internals/. What is checked follows the verifier that
    flatc generates (``VerifyModelBuffer``), its limit on the number of tables included; alignment,
    which files in the wild get wrong, is not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import MalformedModelError
from delegraph.schema.table import INT32, UINT16, UINT32

Positions = NDArray[np.int64]

NOT_A_FLATBUFFER = "The model is not a valid Flatbuffer buffer"

MAX_TABLES = 1_000_000
"""Tables that a file may hold. Source: ``flatbuffers::Verifier::Options::max_tables``."""

MAX_NUMBERS = 1 << 22
"""Numbers that the short lists of a file may hold together; real models stay far below."""


class Flatbuffer:
    """The bytes of a file, and how much of them may still be turned into Python objects.

    Tables may share parts by pointing to the same place, which would let a small file describe a
    huge model. So what is copied is counted: no file needs more tables than its bytes can hold
    unshared, and none of the real ones copies its bytes twice.

    Attributes:
        content: ``[bytes], uint8``.
        size: bytes.
    """

    def __init__(self, content: NDArray[np.uint8]) -> None:
        self.content = content
        self.size = len(content)
        self._tables_left = min(MAX_TABLES, self.size // 8 + 64)
        self._bytes_left = 2 * self.size + 4096
        self._numbers_left = MAX_NUMBERS

    def values(self, dtype: np.dtype[Any], positions: Positions, where: str) -> NDArray[Any]:
        """Return the primitives at *positions*, ``[N], dtype``.

        Raises:
            MalformedModelError: one of them is not inside the file.
        """
        fits = (positions >= 0) & (positions <= self.size - dtype.itemsize)
        self.require(fits, positions, where, "lies outside of the file")
        return self._at_every_byte(dtype)[positions]

    def follow(self, slots: Positions, where: str) -> Positions:
        """Return where the forward offsets stored at *slots* point to."""
        targets: Positions = slots + self.values(UINT32, slots, where)
        self.require(targets <= self.size - 4, slots, where, "points past the end of the file")
        return targets

    def vectors(
        self, slots: Positions, itemsize: int, where: str
    ) -> tuple[Positions, NDArray[np.int64]]:
        """Return first-item positions and lengths of the vectors that *slots* point to."""
        heads = self.follow(slots, where)
        lengths = self.values(UINT32, heads, where).astype(np.int64)
        starts = heads + 4
        fits = lengths * itemsize <= self.size - starts
        self.require(fits, heads, where, "has more items than the file can hold")
        return starts, lengths

    def vtables(self, tables: Positions, where: str) -> tuple[Positions, NDArray[np.int64]]:
        """Return position and size in bytes of each table's vtable."""
        vtables = tables - self.values(INT32, tables, where)
        sizes = self.values(UINT16, vtables, f"vtable of {where}").astype(np.int64)
        fits = (sizes >= 4) & (sizes % 2 == 0) & (vtables + sizes <= self.size)
        self.require(fits, tables, where, "has a damaged vtable")
        return vtables, sizes

    def fields(
        self, tables: Positions, vtables: Positions, sizes: NDArray[np.int64], field_id: int
    ) -> Positions:
        """Return the position of a field in each table, 0 where the table lacks it."""
        entry = 4 + 2 * field_id
        known = sizes > entry
        if not known.any():
            return np.zeros_like(tables)
        offsets = self._at_every_byte(UINT16)[np.where(known, vtables + entry, 0)]
        return np.where(known & (offsets > 0), tables + offsets, 0)

    def count_tables(self, count: int, where: str) -> None:
        """Take *count* tables from what the file may hold."""
        self._tables_left -= count
        if self._tables_left < 0:
            raise _malformed(f"{where}: more tables than a file of {self.size} bytes can hold")

    def count_numbers(self, count: int, itemsize: int, where: str) -> None:
        """Take *count* copied numbers of *itemsize* bytes from what the file may hold."""
        self._numbers_left -= count
        self._bytes_left -= count * itemsize
        if self._numbers_left < 0 or self._bytes_left < 0:
            raise _malformed(f"{where}: lists hold more than a file of {self.size} bytes can")

    def count_characters(self, count: int, where: str) -> None:
        """Take *count* characters from what the file may hold."""
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise _malformed(f"{where}: texts hold more than a file of {self.size} bytes can")

    def require(self, good: NDArray[np.bool_], at: Positions, where: str, fault: str) -> None:
        """Raise an error that names the first place which is not *good*.

        Raises:
            MalformedModelError: some item of *good* is false.
        """
        if not good.all():
            byte = int(at[int(np.argmin(good))])
            raise _malformed(f"{where} at byte {byte} {fault} ({self.size} bytes)")

    def _at_every_byte(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return a view whose item ``i`` is the primitive that starts at byte ``i``."""
        count = max(0, self.size - dtype.itemsize + 1)
        return np.ndarray((count,), dtype, self.content.data, 0, (1,))


def _malformed(fault: str) -> MalformedModelError:
    return MalformedModelError(f"{NOT_A_FLATBUFFER}: {fault}")
