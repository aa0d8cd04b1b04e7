"""Writes schema records as flatbuffer bytes.

Source:
    tflite/converter/schema/schema.fbs by way of :mod:`delegraph.schema.tables`.
"""

from __future__ import annotations

from typing import Any

import flatbuffers
import numpy as np
from flatbuffers import number_types
from numpy.typing import NDArray

from delegraph.schema.parts_outside import ALIGNMENT, PartsOutside, aligned, large_parts, padded
from delegraph.schema.reader import FILE_IDENTIFIER
from delegraph.schema.table import (
    UINT8,
    ArrayVector,
    Child,
    ChildVector,
    Field,
    Scalar,
    ScalarVector,
    String,
    Table,
    Union,
)
from delegraph.schema.tables import Model

INLINE_LIMIT = 2_000_000_000
"""Largest number of bytes of constants for which a file is one flatbuffer, with 32-bit offsets."""

_FLAGS = {
    "?": number_types.BoolFlags,
    "b": number_types.Int8Flags,
    "B": number_types.Uint8Flags,
    "i": number_types.Int32Flags,
    "I": number_types.Uint32Flags,
    "q": number_types.Int64Flags,
    "l": number_types.Int64Flags,
    "Q": number_types.Uint64Flags,
    "L": number_types.Uint64Flags,
    "f": number_types.Float32Flags,
}
"""Mapping from a ``dtype.char`` to the flags by which the builder stores it."""


def write_model(model: Model, *, inline_limit: int = INLINE_LIMIT) -> bytes:
    """Return *model* as the bytes of a ``.tflite`` file.

    Fields with default values are omitted. If constants and custom options together exceed
    *inline_limit* bytes, they are written after the flatbuffer, and records have their offset and
    size. Metadata buffers stay inside the flatbuffer, where the official runtime expects them.

    Raises:
        TypeError: a number does not fit its field, or a value has the wrong type.
    """
    if sum(map(len, large_parts(model))) <= inline_limit:
        return _flatbuffer(model)
    # An offset always takes 8 bytes, so a first try shows the length of the flatbuffer.
    base = aligned(len(_flatbuffer(PartsOutside(model, ALIGNMENT).model)))
    outside = PartsOutside(model, base)
    return b"".join(padded([_flatbuffer(outside.model), *outside.blobs]))


def _flatbuffer(model: Model) -> bytes:
    constants = sum(len(blob) + 64 for blob in large_parts(model))
    return write_root(model, FILE_IDENTIFIER, constants)


def write_root(root: Table, identifier: bytes, expected: int = 0) -> bytes:
    """Return a flatbuffer with the root table *root* and a file identifier of four bytes.

    Args:
        root: the root table, which refers to all other tables.
        identifier: identifier of the file format, such as ``b"TFL3"``.
        expected: number of bytes of the large parts of *root*, so that the buffer need not grow.

    Raises:
        TypeError: a number does not fit its field, or a value has the wrong type.
    """
    builder = flatbuffers.Builder(expected + 4096)
    builder.Finish(_Writer(builder).table(root), identifier)
    with memoryview(builder.Bytes) as content:
        return bytes(content[builder.Head() :])


class _Writer:
    """Writes tables with the flatbuffer builder, children first."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder

    def table(self, record: Table) -> int:
        """Write *record* after all tables, texts and lists that it refers to; return its offset."""
        builder, values = self._builder, list(zip(record.FIELDS, record, strict=True))
        references = [
            (field, value, self._reference(field, value))
            for field, value in values
            if not isinstance(field.kind, Scalar) and not _is_default(field, value)
        ]
        builder.StartObject(max((field.id for field in record.FIELDS), default=-1) + 1)
        for field, value, offset in references:
            builder.PrependUOffsetTRelativeSlot(field.id, offset, 0)
            if isinstance(field.kind, Union):
                tag = field.kind.tag(value)
                builder.PrependSlot(number_types.Uint8Flags, field.id - 1, tag, 0)
        for field, value in values:
            if isinstance(field.kind, Scalar):
                flags = _FLAGS[field.kind.dtype.char]
                builder.PrependSlot(flags, field.id, flags.py_type(value), field.default)
        return int(builder.EndObject())

    def _reference(self, field: Field, value: Any) -> int:
        match field.kind:
            case String():
                return int(self._builder.CreateString(value))
            case ScalarVector(dtype):
                return self._array(np.array(value, dtype), dtype.itemsize)
            case ArrayVector(dtype, align):
                if np.asarray(value).dtype != dtype:
                    raise TypeError(f"{field.name} holds {dtype}, not {np.asarray(value).dtype}")
                return self._array(value, align)
            case Child() | Union():
                return self.table(value)
            case ChildVector():
                return self._children([self.table(record) for record in value])
        raise TypeError(f"{field.name}: no way to write {field.kind!r}")

    def _array(self, values: NDArray[Any], align: int) -> int:
        builder = self._builder
        builder.StartVector(values.itemsize, len(values), align)
        end = builder.head
        builder.head = end - values.nbytes
        # A slice of the bytearray would copy the data twice.
        with memoryview(builder.Bytes) as content:
            content[builder.head : end] = np.ascontiguousarray(values).view(UINT8).data
        return int(builder.EndVector())

    def _children(self, offsets: list[int]) -> int:
        self._builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self._builder.PrependUOffsetTRelative(offset)
        return int(self._builder.EndVector())


def _is_default(field: Field, value: Any) -> bool:
    return value is None or (isinstance(value, tuple) and value == field.default == ())
