"""Cases of the operators on strings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from flex_cases import Case, one, strings

I32, I64, BOOL = TensorType.INT32, TensorType.INT64, TensorType.BOOL
TEXT = strings([[b"Hello World", "Grüße, ÄÖÜ".encode()], [b"", b"  a b\t"]])

FLOATS = [
    b"0x1p3", b"-0x.8", b" 0X1.8P+1\t", b"0x1p99999999999", b"-0x1p99999999999", b"0x1p-99999",
    b"nan", b"-NaN(a_1)", b"+INFINITY", b"1e39", b"-1e400", b"1e-50", b"-0", b"\n1.e5\r",
    b"1.000000059604644775390625", b"1.00000005960464477539062500001", b"16777217",
    b"-16777217.0000000001", b"16777219", b"0x1.000001p0", b"0x1.0000010000000001p0",
    b"0x1.000003p0", b"-0x1.00000300000000000000000000001", b"7.0064923216240853e-46",
    b"7.00649232162408535461864791644958065640130970938257885878534141944895541342930300743319e-46",
    b"340282356779733661637539395458142568447.9", b"340282356779733661637539395458142568448",
    b"1" + b"0" * 5000 + b"e-5000", b"0e99999999999", b"0." + b"0" * 400 + b"1e401",
]  # fmt: skip
"""What C's ``strtod`` reads; some are next to the middle between two floats."""


def cases() -> Iterator[Case]:
    for encoding in (b"", b"utf-8"):
        for op in ("StringLower", "StringUpper"):
            yield one(op, TEXT, encoding=encoding)
    yield one("StringStrip", TEXT)
    for unit in (b"BYTE", b"UTF8_CHAR"):
        yield one("StringLength", TEXT, unit=unit, out=I32)
        for position, count in ((0, 3), (2, 2), (-2, 5), (1, 0)):
            at, n = np.int32(position), np.int32(count)
            yield one("Substr", TEXT[0], at, n, T=DataType.INT32, unit=unit)
        at = np.array([0, 1], np.int64)
        yield one("Substr", TEXT[0], at, at + 1, T=DataType.INT64, unit=unit)
    yield from _joining()
    yield from _splitting()
    yield from _numbers()
    yield from _expressions()
    yield from _hashes()


def _joining() -> Iterator[Case]:
    comma = strings(b",")
    yield one("StringJoin", TEXT, comma, TEXT, N=3, separator=b"|")
    yield one("StringJoin", comma, comma, N=2, separator=b"")
    for axes in ([0], [1], [1, 0], [0, 1], [-1], []):
        for keep in (False, True):
            dims = np.array(axes, np.int32)
            yield one("ReduceJoin", TEXT, dims, keep_dims=keep, separator=b"-")


def _splitting() -> Iterator[Case]:
    texts = strings([b"a,b;;c", b"", b" x  y ", b",", b"plain"])
    out = [I64, TensorType.STRING, I64]
    for skip in (False, True):
        for delimiter in (b",;", b",", b""):
            yield one("StringSplit", texts, strings(delimiter), skip_empty=skip, out=out)
    for most in (-1, 0, 1, 2):
        for separator in (b",", b";;", b""):
            yield one("StringSplitV2", texts, strings(separator), maxsplit=most, out=out)


def _numbers() -> Iterator[Case]:
    defaults = {"precision": -1, "scientific": False, "shortest": False, "width": -1, "fill": b""}
    string = TensorType.STRING
    for type in (DataType.FLOAT32, DataType.FLOAT64):
        x = np.array([0, -1.5, 1e10, 1 / 3, np.inf, np.nan], type.dtype)
        for change in (
            {},
            {"precision": 2},
            {"scientific": True},
            {"shortest": True},
            {"width": 12, "fill": b"0", "precision": 3},
            {"width": 9, "fill": b"-", "precision": 1},
        ):
            yield one(
                "AsString",
                x[: 4 if change.get("fill") == b"0" else 6],
                out=string,
                T=type,
                **{**defaults, **change},
            )
    for type in (DataType.INT32, DataType.INT64, DataType.UINT8, DataType.INT8):
        x = np.array([0, 7, 120], type.dtype)
        for change in ({}, {"width": 5}, {"width": 5, "fill": b"0"}):
            yield one("AsString", x, out=string, T=type, **{**defaults, **change})
    yield one("AsString", np.array([True, False]), out=string, T=DataType.BOOL, **defaults)
    z = np.array([1 + 2j, -0.5j], np.complex64)
    yield one("AsString", z, out=string, T=DataType.COMPLEX64, **defaults)
    yield one("AsString", TEXT, out=string, T=DataType.STRING, **defaults)
    digits = strings([b"12", b" -7 ", b"+0"])
    for type in (DataType.FLOAT32, DataType.FLOAT64, DataType.INT32, DataType.INT64):
        yield one("StringToNumber", digits, out_type=type, out=TensorType[type.name])
    reals = strings([b"1.5", b"-2e-3", b"inf", b"-inf", b".5", b"7."])
    yield one("StringToNumber", reals, out_type=DataType.FLOAT32, out=TensorType.FLOAT32)
    for type in (DataType.FLOAT32, DataType.FLOAT64):
        yield one("StringToNumber", strings(FLOATS), out_type=type, out=TensorType[type.name])
    zeros = strings([b"0" * 5000 + b"5", b"\v-0\f"])
    yield one("StringToNumber", zeros, out_type=DataType.INT32, out=I32)
    raw = strings([b"", b"a", b"ab", b"\xff\xfe\xfd", b"Hello World"])
    for pad in (False, True):
        yield one("EncodeBase64", raw, pad=pad)
    yield one("DecodeBase64", strings([b"", b"YQ", b"YQ==", b"__79", b"SGVsbG8gV29ybGQ"]))


def _expressions() -> Iterator[Case]:
    for pattern, rewrite in (
        (b"[aeiou]", b"*"),
        (rb"(\w)(\w)", rb"\2\1"),
        (b"", b"-"),
        (b"l+", b""),
    ):
        for everywhere in (False, True):
            yield one(
                "RegexReplace", TEXT, strings(pattern), strings(rewrite), replace_global=everywhere
            )
            yield one(
                "StaticRegexReplace",
                TEXT,
                pattern=pattern,
                rewrite=rewrite,
                replace_global=everywhere,
            )
    for pattern in (b".*o.*", b"Hello", rb"\s*a b\s*", b""):
        yield one("RegexFullMatch", TEXT, strings(pattern), out=BOOL)
        yield one("StaticRegexFullMatch", TEXT, pattern=pattern, out=BOOL)


def _hashes() -> Iterator[Case]:
    texts = strings([b"x" * n for n in (0, 1, 3, 7, 8, 9, 16, 17, 40, 100)])
    for buckets in (1, 10, 1 << 40):
        yield one("StringToHashBucketFast", texts, num_buckets=buckets, out=I64)
        yield one("StringToHashBucketStrong", texts, num_buckets=buckets, key=[3, 1 << 62], out=I64)
        yield one("StringToHashBucket", texts, num_buckets=buckets, out=I64)
