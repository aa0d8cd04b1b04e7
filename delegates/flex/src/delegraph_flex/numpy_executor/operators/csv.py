"""Decodes records of comma-separated values (CSV).

Source:
    DecodeCSVOp, core/kernels/decode_csv_op.cc.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph_flex.data_types import DataType
from delegraph_flex.executor import Step
from delegraph_flex.flex_node import FlexNode, Unsupported
from delegraph_flex.memory import require
from delegraph_flex.numpy_executor.number_parser import PARSED, number_parser
from delegraph_flex.numpy_executor.registry import operator

_NO_LINE_END = re.compile(rb"[^\r\n]")


@operator("DecodeCSV")
def decode_csv(node: FlexNode) -> Step:
    """Return a function that splits CSV records into columns of the given types.

    Empty fields get a default value.
    """
    layout = _Layout.of(node)
    columns = [_Column.of(type) for type in node.types("OUT_TYPE")]
    if layout.selected and len(layout.selected) != len(columns):
        raise Unsupported(f"select_cols has {len(layout.selected)}, OUT_TYPE {len(columns)}")
    missing = (b"", node.bytes("na_value", b""))

    def run(records: NDArray[Any], *defaults: NDArray[Any]) -> list[NDArray[Any]]:
        for i, default in enumerate(defaults):
            if np.ndim(default) > 1 or np.size(default) > 1:
                raise ValueError(f"default of field {i} is {np.shape(default)}, expected at most 1")
        for column in columns:
            require(np.shape(records), column.dtype)
        results = [np.empty(np.shape(records), column.dtype) for column in columns]
        flat = [result.reshape(-1) for result in results]
        for i, record in enumerate(np.asarray(records, object).reshape(-1)):
            fields = layout.fields(record)
            if len(fields) != len(columns):
                raise ValueError(f"record {i} has {len(fields)} fields, expected {len(columns)}")
            for f, (field, column) in enumerate(zip(fields, columns, strict=True)):
                if field not in missing:
                    flat[f][i] = column.value(field, f"field {f} of record {i}")
                elif np.size(defaults[f]):
                    flat[f][i] = defaults[f].reshape(-1)[0]
                else:
                    raise ValueError(f"field {f} of record {i} is missing, and it has no default")
        return results

    return run


@dataclass(frozen=True, slots=True)
class _Column:
    """Element type of a CSV column, and the function that parses its fields."""

    type: DataType
    parse: Callable[[bytes], Any]

    @classmethod
    def of(cls, type: DataType) -> _Column:
        if type is DataType.STRING:
            return cls(type, lambda field: field)
        if type not in PARSED:
            raise Unsupported(f"DecodeCSV to {type.name}", "dtype")
        return cls(type, number_parser(type))

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.type.dtype

    def value(self, field: bytes, where: str) -> Any:
        found = self.parse(field)
        if found is None:
            text = field.decode(errors="replace")
            raise ValueError(f"{where} is no {self.type.name.lower()}: {text}")
        return found


@dataclass(frozen=True, slots=True)
class _Layout:
    """Rules by which a CSV record is split into fields.

    Attributes:
        delimiter: byte between fields.
        has_quotes: whether fields with delimiters or quotes are enclosed in ``"``.
        selected: ascending numbers of the fields to return; empty means all.
    """

    delimiter: bytes
    has_quotes: bool
    selected: tuple[int, ...]

    @classmethod
    def of(cls, node: FlexNode) -> _Layout:
        delimiter, selected = node.bytes("field_delim", b","), node.ints("select_cols", ())
        if len(delimiter) != 1:
            raise Unsupported(f"field_delim is {delimiter!r}, expected one byte")
        if any(a >= b for a, b in pairwise((-1, *selected))):
            raise Unsupported(f"select_cols is {list(selected)}, expected rising numbers from 0")
        return cls(delimiter, node.bool("use_quote_delim", True), selected)

    def fields(self, record: bytes) -> list[bytes]:
        """Return the selected fields of a record; text after the last of these is not checked.

        Raises:
            ValueError: a quote or line end is in an invalid place.
        """
        found: list[bytes] = []
        at = count = 0
        while (at := _field_start(record, at)) < len(record):
            is_quoted = self.has_quotes and record[at : at + 1] == b'"'
            field, at = self._quoted(record, at + 1) if is_quoted else self._plain(record, at)
            if not self.selected or count in self.selected:
                found.append(field)
                if self.selected and len(found) == len(self.selected):
                    return found
            count += 1
        if record.endswith(self.delimiter) and (not self.selected or count in self.selected):
            found.append(b"")
        return found

    def _plain(self, record: bytes, at: int) -> tuple[bytes, int]:
        """Return an unquoted field from *at* on, and the next field's position."""
        end = record.find(self.delimiter, at)
        end = len(record) if end < 0 else end
        field = record[at:end]
        if b"\n" in field or b"\r" in field or (self.has_quotes and b'"' in field):
            raise ValueError(f"field {field!r} has quotes or line ends, and no quotes around it")
        return field, end + 1

    def _quoted(self, record: bytes, at: int) -> tuple[bytes, int]:
        """Return the quoted field whose text starts at *at*, and the position of the next field."""
        parts = []
        while (end := record.find(b'"', at)) >= 0:
            parts.append(record[at:end])
            following = record[end + 1 : end + 2]
            if following in (b"", self.delimiter):
                return b"".join(parts), end + 2
            if following != b'"':
                raise ValueError(f"a quote inside {record!r} is not written twice")
            parts.append(following)
            at = end + 2
        raise ValueError(f"a quoted field of {record!r} does not end")


def _field_start(record: bytes, at: int) -> int:
    """Return the first position in *record*, from *at* on, that has no line end."""
    found = _NO_LINE_END.search(record, at)
    return found.start() if found else len(record)
