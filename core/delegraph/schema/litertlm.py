"""The tables in the header of a ``.litertlm`` file: its sections, and facts about them.

Source:
    schema/core/litertlm_header_schema.fbs of LiteRT-LM.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from delegraph.schema.table import (
    FLOAT32,
    INT8,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    Field,
    Scalar,
    Table,
    boolean,
    child,
    children,
    string,
    uint64,
    union,
)


def _number(dtype: np.dtype[Any], id: int = 0) -> Any:
    return Field(id, Scalar(dtype), 0)


class UInt8Value(Table):
    """An unsigned integer of 8 bits, as the value of a :class:`KeyValuePair`."""

    value: int = _number(UINT8)


class Int8Value(Table):
    """A signed integer of 8 bits, as the value of a :class:`KeyValuePair`."""

    value: int = _number(INT8)


class UInt16Value(Table):
    """An unsigned integer of 16 bits, as the value of a :class:`KeyValuePair`."""

    value: int = _number(UINT16)


class Int16Value(Table):
    """A signed integer of 16 bits, as the value of a :class:`KeyValuePair`."""

    value: int = _number(np.dtype("<i2"))


class UInt32Value(Table):
    """An unsigned integer of 32 bits, as the value of a :class:`KeyValuePair`."""

    value: int = _number(UINT32)


class Int32Value(Table):
    """A signed integer of 32 bits, as the value of a :class:`KeyValuePair`."""

    value: int = _number(INT32)


class Float32Value(Table):
    """A float of 32 bits, as the value of a :class:`KeyValuePair`."""

    value: float = _number(FLOAT32)


class BoolValue(Table):
    """A bool, as the value of a :class:`KeyValuePair`."""

    value: bool = boolean(0, default=False)


class StringValue(Table):
    """A text, as the value of a :class:`KeyValuePair`."""

    value: str | None = string(0, default=None)


class UInt64Value(Table):
    """An unsigned integer of 64 bits, as the value of a :class:`KeyValuePair`."""

    value: int = _number(UINT64)


class Int64Value(Table):
    """A signed integer of 64 bits, as the value of a :class:`KeyValuePair`."""

    value: int = _number(INT64)


class DoubleValue(Table):
    """A float of 64 bits, as the value of a :class:`KeyValuePair`."""

    value: float = _number(np.dtype("<f8"))


VALUES: dict[int, type[Table]] = dict(
    enumerate(
        (
            UInt8Value,
            Int8Value,
            UInt16Value,
            Int16Value,
            UInt32Value,
            Int32Value,
            Float32Value,
            BoolValue,
            StringValue,
            UInt64Value,
            Int64Value,
            DoubleValue,
        ),
        start=1,
    )
)


class KeyValuePair(Table):
    """A fact about the file or a section; the value of an unknown type is read as None."""

    key: str | None = string(0, default=None)
    value: Table | None = union(2, VALUES, default=None)


class SystemMetadata(Table):
    """Facts about the file, as pairs of key and value."""

    entries: tuple[KeyValuePair, ...] = children(0, KeyValuePair, default=())


class SectionObject(Table):
    """A section: bytes ``begin_offset`` to ``end_offset`` of the file, the last not included."""

    items: tuple[KeyValuePair, ...] = children(0, KeyValuePair, default=())
    begin_offset: int = uint64(1, default=0)
    end_offset: int = uint64(2, default=0)
    data_type: int = _number(UINT8, 3)


class SectionMetadata(Table):
    """List of all sections of the file."""

    objects: tuple[SectionObject, ...] = children(0, SectionObject, default=())


class LiteRTLMMetaData(Table):
    """The root table of the header."""

    system_metadata: SystemMetadata | None = child(0, SystemMetadata, default=None)
    section_metadata: SectionMetadata | None = child(1, SectionMetadata, default=None)
