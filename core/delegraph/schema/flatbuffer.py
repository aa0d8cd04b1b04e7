"""Bounds-checked reading of flatbuffer primitives, at many positions of the file at once.

Positions are byte offsets from the start of the file, ``[N], int64``. Primitives need not be
aligned: each is read through a view whose stride is one byte.

Source:
    The encoding: https://flatbuffers.dev/internals/. The checks are those of the verifier that
    flatc generates (``VerifyModelBuffer``), with its limit on the number of tables. Alignment is
    not checked, since many files have it wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from delegraph.errors import MalformedModelError
from delegraph.schema.read_limit import ReadLimit
from delegraph.schema.table import INT32, UINT16, UINT32

if TYPE_CHECKING:
    from numpy.typing import NDArray

Positions: TypeAlias = "NDArray[np.int64]"

NOT_A_FLATBUFFER = "The model is not a valid Flatbuffer buffer"

MAX_TABLES = 1_000_000
"""Default of the largest number of tables in a file.

Source: ``flatbuffers::Verifier::Options::max_tables``.
"""

MAX_NUMBERS = 1 << 22
"""Largest number of elements that a file's short lists of numbers may have together.

Real models have far fewer. If the user allows more than ``MAX_TABLES`` tables, the limit grows in
proportion.
"""


class Flatbuffer:
    """The bytes of a file, with limits on the Python objects that may be created from them.

    Tables may share parts by pointing to the same position, so a small file could describe a huge
    model. So tables and copied bytes are counted. The number of tables is limited to the number of
    offsets in the file: any list may repeat one table, but not lists of lists. Texts and short
    lists may take four times the file's size. Real models use less than a third of this number of
    tables, and two thirds of the file's size.

    Args:
        content: the bytes of the file.
        table_limit: number of tables that a file of any size may have.
        limit: further limit on the bytes of texts and short lists; None for no further limit.

    Attributes:
        content: ``[bytes], uint8``.
        size: number of bytes.
    """

    def __init__(
        self,
        content: NDArray[np.uint8],
        table_limit: int = MAX_TABLES,
        limit: ReadLimit | None = None,
    ) -> None:
        self.content = content
        self.size = len(content)
        self._table_limit = table_limit
        self._limit = limit
        self._tables_left = min(table_limit, self.size // 4 + 64)
        self._bytes_left = 4 * self.size + (1 << 20)
        self._numbers_left = max(MAX_NUMBERS, MAX_NUMBERS // MAX_TABLES * table_limit)
        self._views: dict[np.dtype[Any], NDArray[Any]] = {}

    def values(self, dtype: np.dtype[Any], positions: Positions, where: str) -> NDArray[Any]:
        """Return the primitives at *positions*, ``[N], dtype``; *where* names them in the error.

        Raises:
            MalformedModelError: a primitive is not inside the file.
        """
        items = self._at_every_byte(dtype)
        fits = positions.view(np.uint64) < len(items)  # negative positions also count as huge ones
        self.require(fits, positions, where, "lies outside of the file")
        return items[positions]

    def follow(self, slots: Positions, where: str) -> Positions:
        """Return the positions to which the offsets stored at *slots* point.

        Args:
            slots: positions of the offsets.
            where: name of the part that is read, for errors.
        """
        targets: Positions = slots + self.values(UINT32, slots, where)
        self.require(targets <= self.size - 4, slots, where, "points past the end of the file")
        return targets

    def vectors(
        self, slots: Positions, itemsize: int, where: str
    ) -> tuple[Positions, NDArray[np.int64]]:
        """Return first-item positions and lengths of the vectors that *slots* point to.

        Items have *itemsize* bytes; *where* names the vectors in the error.
        """
        heads = self.follow(slots, where)
        lengths = self.values(UINT32, heads, where).astype(np.int64)
        starts = heads + 4
        fits = lengths * itemsize <= self.size - starts
        self.require(fits, heads, where, "has more items than the file can hold")
        return starts, lengths

    def count_tables(self, count: int, where: str) -> None:
        """Add *count* to the number of tables read, which has a limit for the file.

        *where* names the tables in the error.
        """
        self._tables_left -= count
        if self._tables_left < 0:
            if self._table_limit < self.size // 4 + 64:
                raise _malformed(
                    f"{where}: more tables than the limit of {self._table_limit}; "
                    "Interpreter(limits=Limits(tables=...)) sets another"
                )
            raise _malformed(f"{where}: more tables than a file of {self.size} bytes can hold")

    def count_numbers(self, count: int, itemsize: int, where: str) -> None:
        """Count *count* copied numbers of *itemsize* bytes; raise an error above the file's limit.

        *where* names the numbers in the error.
        """
        self._numbers_left -= count
        self._bytes_left -= count * itemsize
        if self._numbers_left < 0 or self._bytes_left < 0:
            raise _malformed(f"{where}: lists hold more than a file of {self.size} bytes can")
        if self._limit is not None:
            self._limit.take(count * itemsize, where)

    def count_characters(self, count: int, where: str) -> None:
        """Count *count* copied characters; raise an error above the file's limit.

        *where* names the texts in the error.
        """
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise _malformed(f"{where}: texts hold more than a file of {self.size} bytes can")
        if self._limit is not None:
            self._limit.take(count, where)

    def require(self, good: NDArray[np.bool_], at: Positions, where: str, fault: str) -> None:
        """Raise an error for the first item that is False in *good*.

        Args:
            good: whether each item is right.
            at: byte offset of each item.
            where: name of the items, for the error.
            fault: text that describes the fault, for the error.

        Raises:
            MalformedModelError: some item of *good* is false.
        """
        if not are_all(good):
            byte = int(at.flat[int(np.argmin(good))])
            raise _malformed(f"{where} at byte {byte} {fault} ({self.size} bytes)")

    def _at_every_byte(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return a view whose item ``i`` is the primitive of *dtype* that starts at byte ``i``."""
        view = self._views.get(dtype)
        if view is None:
            count = max(0, self.size - dtype.itemsize + 1)
            view = np.ndarray((count,), dtype, self.content.data, 0, (1,))
            self._views[dtype] = view
        return view


def are_all(good: NDArray[np.bool_]) -> bool:
    """Whether all items are True; for few items, this is ten times as fast as ``good.all()``."""
    return b"\0" not in good.tobytes()


class Rows:
    """Positions of tables of one type, and of the fields of each table.

    Tables with the same fields share a vtable, so there are few vtables to read.

    Attributes:
        positions: positions of the tables, ``[N], int64``.
    """

    def __init__(
        self, file: Flatbuffer, positions: Positions, field_count: int, where: str
    ) -> None:
        """Find the vtables of tables at *positions*; read their first *field_count* entries.

        Raises:
            MalformedModelError: a vtable is damaged or not inside the file.
        """
        self.positions = positions
        of_rows = positions - file.values(INT32, positions, where)
        is_common = len(of_rows) > 0 and are_all(of_rows == of_rows[0])  # in lists of equal nodes
        if is_common:
            vtables = of_rows[:1]
        else:
            vtables, self._vtable_of_row = np.unique(of_rows, return_inverse=True)
        where = f"vtable of {where}"
        sizes = file.values(UINT16, vtables, where).astype(np.int64)
        sound = (sizes >= 4) & (sizes % 2 == 0) & (vtables + sizes <= file.size)
        file.require(sound, vtables, where, "is damaged")
        self._common_offsets: list[int] | None = None
        if is_common:
            entries = vtables[0] + np.arange(4, min(4 + 2 * field_count, sizes[0]), 2)
            offsets = file.values(UINT16, entries, where).tolist()
            self._common_offsets = offsets + [0] * (field_count - len(offsets))
            return
        entries = 4 + 2 * np.arange(field_count)
        known = entries < sizes[:, None]  # [vtables, fields]
        offsets = file.values(UINT16, np.where(known, vtables[:, None] + entries, 0), where)
        self._offsets = np.where(known, offsets, 0).astype(np.int64)

    def field(self, field_id: int) -> Positions | None:
        """Return the position of field *field_id* in each table; 0 where it is absent.

        The result is None if no table has the field.
        """
        positions: Positions
        if self._common_offsets is not None:
            offset = self._common_offsets[field_id]
            positions = self.positions + offset
            return positions if offset else None
        of_vtables = self._offsets[:, field_id]
        if not of_vtables.any():
            return None
        offsets = of_vtables[self._vtable_of_row]
        positions = self.positions + offsets
        if not of_vtables.all():
            positions[offsets == 0] = 0
        return positions


def _malformed(fault: str) -> MalformedModelError:
    return MalformedModelError(f"{NOT_A_FLATBUFFER}: {fault}")
