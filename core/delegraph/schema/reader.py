"""Converts flatbuffer bytes to records, for all tables of one type at once.

Reading table by table takes microseconds per field in Python. So all tables of one type are read
together: NumPy gathers one field of all tables at once, and records are created by zipping these
columns. Every number and offset is read, and its bounds checked, by
:mod:`delegraph.schema.flatbuffer`.

Source:
    tflite/converter/schema/schema.fbs by way of :mod:`delegraph.schema.tables`.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from delegraph.collector import collector_paused
from delegraph.errors import MalformedModelError, printable
from delegraph.schema.flatbuffer import (
    MAX_TABLES,
    NOT_A_FLATBUFFER,
    Flatbuffer,
    Positions,
    Rows,
    are_all,
)
from delegraph.schema.read_limit import ReadLimit
from delegraph.schema.table import (
    UINT8,
    ArrayVector,
    Child,
    ChildVector,
    Columns,
    Field,
    Scalar,
    ScalarVector,
    String,
    Table,
    Union,
)
from delegraph.schema.tables import Model, Operator, Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILE_IDENTIFIER = b"TFL3"

AnyTable = TypeVar("AnyTable", bound=Table)

_NEAR = 256
"""Largest average distance in bytes of texts that are decoded together and then cut."""

_FEW = 8
"""Average length of lists of tables from which on columns take less memory than records."""

_BLOCK = 1 << 16
"""Number of tables read at once, so that a damaged count is noticed early."""


def read_model(
    content: NDArray[np.uint8],
    table_limit: int | None = None,
    limit: ReadLimit | None = None,
    *,
    by_column: bool = False,
) -> Model:
    """Return the records of a model file.

    Args:
        content: ``[bytes], uint8``. Arrays in the records are views of it; unknown fields, of a
            schema newer than this one, are skipped. ``Buffer.data`` and ``Operator.custom_options``
            have the bytes even if the file stores them after the flatbuffer.
        table_limit: maximal number of tables; each operator, tensor and options table counts. None
            means a million, as in the official verifier.
        limit: memory that is left for texts and short lists; None if it has no further limit.
        by_column: whether tensors and operators are ``Columns`` instead of tuples of records.

    Raises:
        MalformedModelError: the bytes are not a valid flatbuffer with the identifier ``TFL3``, or
            have too many tables.
    """
    if len(content) < 8:
        raise MalformedModelError(f"{NOT_A_FLATBUFFER}: {len(content)} bytes are too few")
    identifier = content[4:8].tobytes()
    if identifier != FILE_IDENTIFIER:
        found = printable(identifier.decode("ascii", "backslashreplace"))
        raise MalformedModelError(
            f"Model provided has model identifier '{found}', should be 'TFL3' ({NOT_A_FLATBUFFER})"
        )
    with collector_paused():
        in_columns = (Tensor, Operator) if by_column else ()
        model = read_root(Model, content, table_limit, limit, in_columns)
        if not _has_parts_outside(model):
            return model
        from delegraph.schema.parts_outside import with_parts_inside  # lazy: of files above 2 GB

        return with_parts_inside(model, content)


def _has_parts_outside(model: Model) -> bool:
    """Whether constants or custom options of *model* may be stored after the flatbuffer."""
    if any(record.offset > 1 for record in model.buffers or ()):
        return True
    return any(
        max(Columns.of(subgraph.operators).columns[_LARGE_OPTIONS]) > 1
        for subgraph in model.subgraphs or ()
        if subgraph.operators
    )


_LARGE_OPTIONS = Operator.__match_args__.index("large_custom_options_offset")


def read_root(
    table: type[AnyTable],
    content: NDArray[np.uint8],
    table_limit: int | None = None,
    limit: ReadLimit | None = None,
    in_columns: Collection[type[Table]] = (),
) -> AnyTable:
    """Return the root table of a flatbuffer, of type *table*; the identifier is not checked.

    Args:
        table: the root's type.
        content: ``[bytes], uint8``.
        table_limit: maximal number of tables; None means a million.
        limit: memory that is left for texts and short lists; None if it has no further limit.
        in_columns: table types whose lists are read as ``Columns``.

    Raises:
        MalformedModelError: the bytes are not a valid flatbuffer.
    """
    reader = _Reader(content, table_limit, limit, in_columns)
    root = reader.tables(table, np.zeros(1, np.int64), table.__name__)[0]
    assert isinstance(root, table)
    return root


class _Reader:
    """Reads the tables of one file; methods take the positions of one field in many tables."""

    def __init__(
        self,
        content: NDArray[np.uint8],
        table_limit: int | None,
        limit: ReadLimit | None,
        in_columns: Collection[type[Table]],
    ) -> None:
        self._file = Flatbuffer(content, MAX_TABLES if table_limit is None else table_limit, limit)
        self._in_columns = in_columns
        self._bytes = content.data

    def tables(self, table: type[Table], slots: Positions, where: str) -> list[Table]:
        """Return the records of type *table* that the offsets at *slots* point to.

        *where* names them in errors.
        """
        self._file.count_tables(len(slots), where)
        return self._counted_tables(table, slots, where)

    def _counted_tables(self, table: type[Table], slots: Positions, where: str) -> list[Table]:
        records: list[Table] = []
        for block in self._blocks(slots, where):
            records += self._block(table, block)
        return records

    def _blocks(self, slots: Positions, where: str) -> Iterable[Positions]:
        for start in range(0, len(slots), _BLOCK):
            yield self._file.follow(slots[start : start + _BLOCK], where)

    def _block(self, table: type[Table], positions: Positions) -> Iterable[Table]:
        if not table.FIELDS:
            Rows(self._file, positions, 0, table.__name__)
            return repeat(table(), len(positions))
        rows = list(zip(*self._columns(table, positions), strict=True))
        make = partial(tuple.__new__, table)
        if not all(map(_is_integer, table.FIELDS)):
            return map(make, rows)
        # Few objects, as many operators have equal options.
        known = {row: make(row) for row in set(rows)}
        return map(known.__getitem__, rows)

    def _columns(self, table: type[Table], positions: Positions) -> list[Iterable[Any]]:
        rows = Rows(self._file, positions, table.FIELDS[-1].id + 1, table.__name__)
        return [self._column(table, field, rows) for field in table.FIELDS]

    def _column(self, table: type[Table], field: Field, rows: Rows) -> Iterable[Any]:
        """Return the values of *field* in the tables *rows*; the default if a table lacks it.

        *table* is the type of the tables.
        """
        at, where = rows.field(field.id), f"{table.__name__}.{field.name}"
        count = len(rows.positions)
        if at is None:
            return repeat(field.default, count)
        if isinstance(field.kind, Union):
            return self._unions(field.kind, rows.field(field.id - 1), at, where)
        held = at.nonzero()[0]
        if len(held) == count:
            return self._values(field.kind, at, where)
        return _spread(self._values(field.kind, at[held], where), held, count, field.default)

    def _values(self, kind: Any, at: Positions, where: str) -> Sequence[Any]:
        match kind:
            case Scalar(dtype, enum):
                return _members(self._file.values(dtype, at, where).tolist(), enum)
            case String():
                return self._strings(at, where)
            case ScalarVector():
                return self._tuples(kind, at, where)
            case ArrayVector(dtype):
                starts, lengths = self._file.vectors(at, dtype.itemsize, where)
                return self._views(dtype, lengths.tolist(), starts.tolist())
            case Child(table):
                return self.tables(table, at, where)
            case ChildVector(table):
                return self._children(table, at, where)
        raise TypeError(f"{where}: no way to read {kind!r}")

    def _views(
        self, dtype: np.dtype[Any], lengths: list[int], starts: list[int]
    ) -> list[NDArray[Any]]:
        """Return an array of *dtype* for each vector; tables that share a vector share the array.

        *starts* are the byte offsets of the vectors, and *lengths* their numbers of items.
        """
        view, views = partial(np.frombuffer, self._bytes, dtype), {}
        for place in zip(lengths, starts, strict=True):
            if place not in views:
                views[place] = view(*place) if place[0] else np.empty(0, dtype)
        return [views[place] for place in zip(lengths, starts, strict=True)]

    def _strings(self, at: Positions, where: str) -> list[str]:
        starts, lengths = self._file.vectors(at, 1, where)
        ends = starts + lengths
        terminators = self._file.values(UINT8, ends, where)
        self._file.require(terminators == 0, starts, where, "is not terminated")
        self._file.count_characters(int(lengths.sum()), where)
        places = list(zip(starts.tolist(), ends.tolist(), strict=True))
        if _are_apart(starts):
            return self._texts(places, where)
        apart = list(dict.fromkeys(places))  # texts that tables share are read once
        texts = dict(zip(apart, self._texts(apart, where), strict=True))
        return [texts[place] for place in places]

    def _texts(self, places: Sequence[tuple[int, int]], where: str) -> list[str]:
        content = self._bytes
        first = min(places, default=(0, 0))[0]
        last = max(end for _, end in places) if places else 0
        if last - first <= _NEAR * len(places):  # cutting one text is faster than decoding many
            together = str(content[first:last], "latin-1")
            texts = [together[start - first : end - first] for start, end in places]
            if all(map(str.isascii, texts)):
                return texts
        texts = [str(content[start:end], "utf-8", "backslashreplace") for start, end in places]
        if not all(map(str.isascii, texts)):
            for text in texts:
                if not text.isascii():  # one wide character makes all of them take four bytes
                    self._file.count_characters(sys.getsizeof(text), where)
        return texts

    def _tuples(self, kind: ScalarVector, at: Positions, where: str) -> list[tuple[Any, ...]]:
        width = kind.dtype.itemsize
        starts, lengths = self._file.vectors(at, width, where)
        self._file.count_numbers(int(lengths.sum()), width, where)
        if _are_apart(starts):
            return self._numbers(kind, starts, lengths, where)
        places = list(zip(starts.tolist(), lengths.tolist(), strict=True))
        apart = list(dict.fromkeys(places))  # vectors that tables share are read once
        firsts, counts = np.array(apart, np.int64).reshape(-1, 2).T
        tuples = dict(zip(apart, self._numbers(kind, firsts, counts, where), strict=True))
        return [tuples[place] for place in places]

    def _numbers(
        self, kind: ScalarVector, starts: Positions, lengths: NDArray[np.int64], where: str
    ) -> list[tuple[Any, ...]]:
        items, ends = _items(starts, lengths, kind.dtype.itemsize)
        values = self._file.values(kind.dtype, items, where)
        is_exact = kind.dtype.kind != "f"  # equal values are identical, unlike 0.0 and -0.0
        if ends and is_exact and _are_equal(lengths) and _are_equal(values.reshape(len(ends), -1)):
            return _split(_members(values[: ends[0]].tolist(), kind.enum), ends[:1]) * len(ends)
        return _split(_members(values.tolist(), kind.enum), ends)

    def _children(self, table: type[Table], at: Positions, where: str) -> Sequence[Sequence[Table]]:
        starts, lengths = self._file.vectors(at, 4, where)
        self._file.count_tables(int(lengths.sum()), where)
        slots, ends = _items(starts, lengths, 4)
        if table in self._in_columns and len(slots) >= _FEW * len(ends):
            columns: list[list[Any]] = [[] for _ in table.FIELDS]
            for block in self._blocks(slots, where):
                for column, values in zip(columns, self._columns(table, block), strict=True):
                    column += values
            together = Columns(table, columns)
            if len(ends) == 1:
                return [together]
            return [together[start:end] for start, end in pairwise((0, *ends))]
        return _split(self._counted_tables(table, slots, where), ends)

    def _unions(
        self, kind: Union, tags_at: Positions | None, at: Positions, where: str
    ) -> Iterable[Table | None]:
        """Return the table of each union field; None if it is absent or its type unknown.

        Args:
            kind: declaration of the field: the types that the table may have.
            tags_at: positions of the type tags; None if no table has the field.
            at: positions of the offsets to the tables.
            where: name of the tables, for errors.
        """
        column: list[Table | None] = [None] * len(at)
        if tags_at is None:
            return column
        rows = np.flatnonzero((at > 0) & (tags_at > 0))
        tags = self._file.values(UINT8, tags_at[rows], where)
        for tag in sorted(set(tags.tolist())):  # np.unique would import numpy.ma
            table = kind.tables.get(tag)
            if table is not None:
                of_tag = rows[tags == tag]
                members = self.tables(table, at[of_tag], where)
                if len(members) == len(column):
                    return members
                for row, member in zip(of_tag.tolist(), members, strict=True):
                    column[row] = member
        return column


def _is_integer(field: Field) -> bool:
    """Whether a field has integers, for which equal values are identical, unlike 0.0 and -0.0."""
    return isinstance(field.kind, Scalar) and field.kind.dtype.kind != "f"


def _are_equal(rows: NDArray[Any]) -> bool:
    """Whether all rows of an array are equal; there must be at least one."""
    return are_all(rows == rows[0])


def _are_apart(starts: Positions) -> bool:
    """Whether all *starts* differ, so that no two vectors share bytes; true for most files."""
    before, after = starts[:-1], starts[1:]
    if are_all(before > after) or are_all(before < after):
        return True
    return len(set(starts.tolist())) == len(starts)


def _items(
    starts: Positions, lengths: NDArray[np.int64], width: int
) -> tuple[Positions, list[int]]:
    """Return the positions of all vectors' items, and for each vector the end in this list.

    *starts* are the positions of first items, and *lengths* the numbers of items; an item has
    *width* bytes.

    >>> positions, ends = _items(np.array([100, 200]), np.array([2, 1]), 4)
    >>> positions.tolist(), ends
    ([100, 104, 200], [2, 3])
    """
    ends = lengths.cumsum()
    first = (starts - (ends - lengths) * width).repeat(lengths)
    return first + np.arange(len(first)) * width, ends.tolist()


def _split(items: list[Any], ends: list[int]) -> list[tuple[Any, ...]]:
    """Cut *items* into tuples that end at the positions *ends*.

    >>> _split([1, 2, 3], [2, 2, 3])
    [(1, 2), (), (3,)]
    """
    length = ends[0] if ends else 0
    if length and ends == list(range(length, length * len(ends) + 1, length)):
        return list(zip(*[iter(items)] * length, strict=True))  # all vectors have one length
    together = tuple(items)  # its slices are tuples
    return [together[start:end] for start, end in pairwise((0, *ends))]


def _members(numbers: list[Any], enum: Any) -> list[Any]:
    """Convert numbers to members of *enum*; unknown numbers stay numbers."""
    if enum is None:
        return numbers
    known = enum._value2member_map_
    return [known.get(number, number) for number in numbers]


def _spread(values: Sequence[Any], rows: NDArray[np.intp], count: int, default: Any) -> list[Any]:
    """Return a list of *count* values: *values* at the positions *rows*, *default* elsewhere."""
    column = [default] * count
    for row, value in zip(rows.tolist(), values, strict=True):
        column[row] = value
    return column
