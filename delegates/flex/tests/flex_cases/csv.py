"""Cases of comma-separated values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from flex_cases import Case, one, strings
from flex_cases.text import FLOATS

TYPES = {"i": DataType.INT32, "l": DataType.INT64, "f": DataType.FLOAT32, "d": DataType.FLOAT64}


def _case(records: Any, letters: str, *defaults: Any, **attrs: Any) -> Case:
    """Return a case; each letter is the type of a column, ``s`` for strings."""
    types = [TYPES.get(letter, DataType.STRING) for letter in letters]
    arrays = [np.array(d, t.dtype) for d, t in zip(defaults, types, strict=True)]
    out = tuple(TensorType[type.name] for type in types)
    return one("DecodeCSV", strings(records), *arrays, OUT_TYPE=types, out=out, **attrs)


def cases() -> Iterator[Case]:
    plain = [b"1,a", b"-2,", b",\xff b", b",", b"\r\n3,\n4", b'5,"\n"', b' 6 ,"a""b,"""""']
    yield _case(plain, "is", 7, [b"none"])
    yield _case([plain[:2], plain[2:4]], "ls", [7], b"none")
    yield _case(plain[0], "ds", 7, b"none")
    yield _case([], "is", 7, b"none")
    yield _case([b'"1","x"', b'"",', b'"2",""""'], "fs", 0.5, b"d")
    yield _case([b"NA,NA", b'"NA",1'], "si", b"d", 3, na_value=b"NA")
    yield _case([b"1,2", b"3,4"], "ii", [], [])
    yield _case([b"1;2;", b"3;;4"], "iii", 7, 8, 9, field_delim=b";")
    yield _case([b"1\n2"], "ii", 0, 0, field_delim=b"\n")
    yield _case([b'1"2', b'"3'], "ii", 0, 0, field_delim=b'"', use_quote_delim=False)
    yield _case([b'1"2'], "ii", 0, 0, field_delim=b'"')
    yield _case([b'"a",b"c'], "ss", b"", b"", use_quote_delim=False)
    yield _case([b"1,2,3", b"4,5,", b'6,7,8,"bad"x'], "ii", 0, 9, select_cols=[0, 2])
    yield _case([b"1,2,", b"1,2,3,4"], "i", 9, select_cols=[2])
    yield _case([b"2147483647, -2147483648 ", b"+007,\t5"], "ii", 0, 0)
    yield _case([b"-9223372036854775808", b" 0007 "], "l", 0)
    for letter in "fd":
        yield _case([b'"' + text + b'"' for text in FLOATS], letter, 0)
