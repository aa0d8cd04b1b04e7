"""Cases of code points and encodings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delegraph import TensorType
from delegraph_flex.data_types import DataType
from flex_cases import Case, one, strings

TEXT = strings(["Grüße".encode(), b"", "a\x01\t\U0001f600z".encode()])
BROKEN = strings([b"a\xffb", b"\xc3", b"\xe2\x82z", b"ok"])


def cases() -> Iterator[Case]:
    yield one("UnicodeScript", np.arange(0x110000, dtype=np.int32))
    yield one("UnicodeScript", np.int32([[-1, 0x110000, 65], [-(2**31), 2**31 - 1, 0x10FFFF]]))
    yield one("UnicodeScript", np.int32(0x5D0))
    defaults = {
        "errors": b"replace",
        "replacement_char": 65533,
        "replace_control_characters": False,
    }
    for splits in (DataType.INT32, DataType.INT64):
        out = [TensorType[splits.name], TensorType.INT32]
        for change in (
            {},
            {"replacement_char": 63},
            {"errors": b"ignore"},
            {"replace_control_characters": True},
        ):
            for text in (TEXT, BROKEN):
                attrs = {**defaults, **change, "input_encoding": b"UTF-8", "Tsplits": splits}
                yield one("UnicodeDecode", text, out=out, **attrs)
                if splits is DataType.INT64:  # TensorFlow 2.21 aborts the process for INT32
                    with_offsets = [*out, TensorType.INT64]
                    yield one("UnicodeDecodeWithOffsets", text, out=with_offsets, **attrs)
    wide = strings(["aé€".encode("utf-16-be"), b""])
    yield one(
        "UnicodeDecode",
        wide,
        out=[TensorType.INT64, TensorType.INT32],
        **{**defaults, "input_encoding": b"UTF-16-BE", "Tsplits": DataType.INT64},
    )
    yield from _encoding(defaults)


def _encoding(defaults: dict[str, object]) -> Iterator[Case]:
    points = np.array([71, 252, 0x20AC, 0x1F600, 0xD800, 0x110000, 65], np.int32)
    for encoding in (b"UTF-8", b"UTF-16-BE", b"UTF-32-BE"):
        for errors in (b"replace", b"ignore"):
            for splits in (DataType.INT32, DataType.INT64):
                bounds = np.array([0, 2, 2, 7], splits.dtype)
                yield one(
                    "UnicodeEncode",
                    points,
                    bounds,
                    out=TensorType.STRING,
                    errors=errors,
                    output_encoding=encoding,
                    replacement_char=65533,
                    Tsplits=splits,
                )
        for text in (TEXT, BROKEN):
            yield one(
                "UnicodeTranscode",
                text,
                input_encoding=b"UTF-8",
                output_encoding=encoding,
                **defaults,
            )  # type: ignore[arg-type]
