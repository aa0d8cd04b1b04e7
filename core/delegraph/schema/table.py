"""Declarative flatbuffer tables: one Python class per table defines both reading and writing.

A table is declared as an annotated class whose fields name their id, type and default::

    class PackOptions(Table):
        values_count: int = int32(0, default=0)
        axis: int = int32(1, default=0)

An instance is a tuple of its field values in declaration order. So it is immutable and created as
fast as a tuple: readers convert whole columns of values to records with ``map(make, zip(...))``.

Source:
    The encoding that the kinds describe: https://flatbuffers.dev/internals/
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload

import numpy as np

if TYPE_CHECKING:
    from typing_extensions import Self

if sys.version_info >= (3, 11):
    from typing import dataclass_transform
else:
    _T = TypeVar("_T")

    def dataclass_transform(**_: Any) -> Callable[[_T], _T]:
        """Return a decorator that changes nothing; only type checkers use it."""
        return lambda decorated: decorated


INT8 = np.dtype("<i1")
UINT8 = np.dtype("<u1")
BOOL = np.dtype("?")
UINT16 = np.dtype("<u2")
INT32 = np.dtype("<i4")
UINT32 = np.dtype("<u4")
FLOAT32 = np.dtype("<f4")
INT64 = np.dtype("<i8")
UINT64 = np.dtype("<u8")


# Not NamedTuple, which takes ten times as long; every process creates these classes.


class _Numbers:
    """Base class of fields with numbers of one type, or members of an enumeration."""

    __slots__ = __match_args__ = ("dtype", "enum")

    def __init__(self, dtype: np.dtype[Any], enum: type[IntEnum] | None = None) -> None:
        self.dtype = dtype
        self.enum = enum


class Scalar(_Numbers):
    """A field with a number, bool or enumeration member, stored in the table itself."""

    __slots__ = ()


class String:
    """A field with a UTF-8 text."""

    __slots__ = ()


class ScalarVector(_Numbers):
    """A field with a list of numbers, read as a tuple; for short lists such as shapes."""

    __slots__ = ()


class ArrayVector:
    """A field with a list of numbers, read as a view of the file; for long lists.

    Attributes:
        dtype: element type.
        align: written files start the elements at a multiple of this number of bytes.
    """

    __slots__ = __match_args__ = ("dtype", "align")

    def __init__(self, dtype: np.dtype[Any], align: int) -> None:
        self.dtype = dtype
        self.align = align


class Child:
    """A field that refers to one table."""

    __slots__ = __match_args__ = ("table",)

    def __init__(self, table: type[Table]) -> None:
        self.table = table


class ChildVector:
    """A field that refers to a list of tables."""

    __slots__ = __match_args__ = ("table",)

    def __init__(self, table: type[Table]) -> None:
        self.table = table


class Union:
    """A field that refers to a table of one of several types.

    The field id before this one holds the type tag.
    """

    __slots__ = __match_args__ = ("tables",)

    def __init__(self, tables: Mapping[int, type[Table]]) -> None:
        self.tables = tables

    def tag(self, table: Table) -> int:
        """Return the type tag under which *table* is stored."""
        for tag, member in self.tables.items():
            if type(table) is member:
                return tag
        raise TypeError(f"{type(table).__name__} is not a member of this union")


Kind = Scalar | String | ScalarVector | ArrayVector | Child | ChildVector | Union


class Field:
    """One field of a table.

    Attributes:
        id: index in the vtable, from 0.
        kind: storage form of the value.
        default: value of a field that the file lacks.
        name: name in the schema; the class of the table sets it.
    """

    __slots__ = ("default", "id", "kind", "name")

    def __init__(self, id: int, kind: Kind, default: Any) -> None:
        self.id = id
        self.kind = kind
        self.default = default
        self.name = ""


_BOOL, _INT8, _INT32, _UINT32, _INT64, _UINT64, _FLOAT32 = (
    Scalar(dtype) for dtype in (BOOL, INT8, INT32, UINT32, INT64, UINT64, FLOAT32)
)


def boolean(id: int, *, default: bool) -> Any:
    """Declare table field *id*, a bool, which is *default* if the file lacks it."""
    return Field(id, _BOOL, default)


def int8(id: int, *, default: int) -> Any:
    """Declare table field *id*, an 8-bit signed integer; *default* if the file lacks it."""
    return Field(id, _INT8, default)


def int32(id: int, *, default: int) -> Any:
    """Declare table field *id*, a 32-bit signed integer; *default* if the file lacks it."""
    return Field(id, _INT32, default)


def uint32(id: int, *, default: int) -> Any:
    """Declare table field *id*, a 32-bit unsigned integer; *default* if the file lacks it."""
    return Field(id, _UINT32, default)


def int64(id: int, *, default: int) -> Any:
    """Declare table field *id*, a 64-bit signed integer; *default* if the file lacks it."""
    return Field(id, _INT64, default)


def uint64(id: int, *, default: int) -> Any:
    """Declare table field *id*, a 64-bit unsigned integer; *default* if the file lacks it."""
    return Field(id, _UINT64, default)


def float32(id: int, *, default: float) -> Any:
    """Declare table field *id*, a 32-bit float, which is *default* if the file lacks it."""
    return Field(id, _FLOAT32, default)


def enum(id: int, *, default: IntEnum, dtype: np.dtype[Any] = INT8) -> Any:
    """Declare table field *id*, a member of *default*'s enumeration, stored as *dtype*.

    Numbers that are not in the enumeration are read as plain integers.
    """
    return Field(id, Scalar(dtype, type(default)), default)


def string(id: int, *, default: None = None) -> Any:
    """Declare table field *id*, a text, which is *default* if the file lacks it."""
    return Field(id, String(), default)


def vector(
    id: int,
    dtype: np.dtype[Any],
    *,
    default: tuple[()] | None,
    enum: type[IntEnum] | None = None,
) -> Any:
    """Declare table field *id*, a list of numbers that is read as a tuple.

    An absent list is read as *default*. Numbers are stored as *dtype*, and read as members of
    *enum* if it is given.
    """
    return Field(id, ScalarVector(dtype, enum), default)


def array(id: int, dtype: np.dtype[Any], *, default: None, align: int = 0) -> Any:
    """Declare table field *id*, a list of *dtype* numbers, read as a view of the file.

    In written files, the list starts at a multiple of *align* bytes. An absent list is read as
    *default*.
    """
    return Field(id, ArrayVector(dtype, max(align, dtype.itemsize)), default)


def child(id: int, table: type[Table], *, default: None) -> Any:
    """Declare table field *id*, which refers to a *table*; *default* if the file lacks it."""
    return Field(id, Child(table), default)


def children(id: int, table: type[Table], *, default: tuple[()] | None) -> Any:
    """Declare table field *id*, a list of *table* records; it is *default* if the file lacks it."""
    return Field(id, ChildVector(table), default)


def union(id: int, tables: Mapping[int, type[Table]], *, default: None) -> Any:
    """Declare a field for a table of one of several types; field ``id - 1`` holds the type tag.

    *tables* has the type of each tag. The field is *default* if the file lacks it.
    """
    return Field(id, Union(tables), default)


@dataclass_transform(
    frozen_default=True,
    kw_only_default=True,
    eq_default=False,
    field_specifiers=(
        boolean, int8, int32, uint32, int64, uint64, float32, enum, string, vector, array,
        child, children, union,
    ),
)  # fmt: skip
class TableType(type):
    """Metaclass that turns the declared fields of a table into tuple items."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> TableType:
        """Create the class *name* with ``FIELDS`` and one read-only property for each field."""
        fields = tuple(_named_fields(namespace))
        for position, field in enumerate(fields):
            namespace[field.name] = property(itemgetter(position))
        namespace["FIELDS"] = fields
        namespace["__slots__"] = ()
        namespace["__match_args__"] = tuple(field.name for field in fields)
        return super().__new__(mcs, name, bases, namespace)


def _named_fields(namespace: dict[str, Any]) -> Iterable[Field]:
    for name, value in namespace.items():
        if isinstance(value, Field):
            value.name = name
            yield value


class Table(tuple[Any, ...], metaclass=TableType):
    """Base class of the schema's records: immutable, compared by type and by value.

    >>> class PackOptions(Table):
    ...     values_count: int = int32(0, default=0)
    ...     axis: int = int32(1, default=0)
    >>> options = PackOptions(values_count=3)
    >>> options
    PackOptions(values_count=3)
    >>> options.replace(axis=-1).axis
    -1
    """

    FIELDS: ClassVar[tuple[Field, ...]]

    def __new__(cls, **values: Any) -> Self:
        """Return a record with the given fields; other fields have their defaults."""
        row = [values.pop(field.name, field.default) for field in cls.FIELDS]
        if values:
            known = ", ".join(sorted(field.name for field in cls.FIELDS)) or "none"
            raise TypeError(f"{cls.__name__} has no field {min(values)!r}; it has {known}")
        return tuple.__new__(cls, row)

    @classmethod
    def make(cls, row: Iterable[Any]) -> Self:
        """Return a record with the values *row*, one for each field in the order of declaration."""
        return tuple.__new__(cls, row)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        kept = {field.name: value for field, value in zip(self.FIELDS, self, strict=True)}
        return type(self)(**{**kept, **changes})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table) or type(self) is not type(other):
            return False  # not NotImplemented: Python would then compare the tuples
        return all(map(_equal, self, other))

    def __bool__(self) -> bool:
        """Whether the record is present: always True, also for a record without fields."""
        return True

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __repr__(self) -> str:
        shown = (
            f"{field.name}={value!r}"
            for field, value in zip(self.FIELDS, self, strict=True)
            if not _equal(value, field.default)
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).make, (tuple(self),)


def _equal(a: Any, b: Any) -> bool:
    """Whether the field values *a* and *b* are equal; for arrays, dtype, shape and bytes count."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return False
    return bool(a == b)


AnyTable = TypeVar("AnyTable", bound=Table)


class Columns(Sequence[AnyTable]):
    """Tables of one type, stored as one list of values for each field, to save time.

    A large model has tens of thousands of tensors and operators. Creating their records takes
    longer than reading their fields, and a loader needs each record only once.

    Args:
        table: type of the tables.
        columns: the values of each field, in the order of ``table.FIELDS``.

    Attributes:
        columns: the argument *columns*.

    >>> from delegraph.schema.tables import Metadata
    >>> both = Columns(Metadata, [["a", "b"], [1, 2]])
    >>> both[1]
    Metadata(name='b', buffer=2)
    >>> both[:1].columns
    [['a'], [1]]
    """

    def __init__(self, table: type[AnyTable], columns: Sequence[Sequence[Any]]) -> None:
        self._table = table
        self.columns = columns

    @classmethod
    def of(cls, records: Sequence[AnyTable]) -> Columns[AnyTable]:
        """Return the columns of *records*, which must not be empty."""
        if isinstance(records, Columns):
            return records
        return cls(type(records[0]), list(map(list, zip(*records, strict=True))))

    def __len__(self) -> int:
        return len(self.columns[0])

    @overload
    def __getitem__(self, index: int) -> AnyTable: ...
    @overload
    def __getitem__(self, index: slice) -> Columns[AnyTable]: ...
    def __getitem__(self, index: int | slice) -> AnyTable | Columns[AnyTable]:
        """Return record *index*, created at each access, or the columns of a slice of records."""
        if isinstance(index, slice):
            return Columns(self._table, [column[index] for column in self.columns])
        return self._table.make(column[index] for column in self.columns)

    def __iter__(self) -> Iterator[AnyTable]:
        return map(self._table.make, zip(*self.columns, strict=True))
