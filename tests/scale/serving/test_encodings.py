"""Tensors of requests: what fits keeps every value, what does not is refused with reasons."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from delegraph.scale.serving.encodings import (
    DTYPES,
    from_bytes,
    from_json,
    require_datatype,
    require_shape,
    to_bytes,
    to_json,
)
from delegraph.scale.serving.refusals import Kind, Refusal


@pytest.mark.parametrize("datatype", sorted(DTYPES))
def test_bytes_are_viewed_and_come_back(datatype: str) -> None:
    values = np.arange(6).reshape(2, 3).astype(DTYPES[datatype])
    content = to_bytes(values)
    found = from_bytes("x", datatype, (2, 3), content)
    np.testing.assert_array_equal(found, values)
    assert not found.flags.owndata
    items = json.loads(to_json(values))
    np.testing.assert_array_equal(from_json("x", datatype, (2, 3), items), values)


def test_texts_come_back() -> None:
    texts = np.array([["a", ""], ["ö", "ab"]], object)
    found = from_bytes("x", "BYTES", (2, 2), to_bytes(texts))
    assert found.tolist() == [[b"a", b""], ["ö".encode(), b"ab"]]
    assert json.loads(to_json(found)) == ["a", "", "ö", "ab"]
    assert from_json("x", "BYTES", (2, 2), texts.tolist()).tolist() == texts.tolist()


def test_integers_of_all_sizes_are_exact() -> None:
    items = [2**63 - 1, -(2**63), 0]
    assert from_json("x", "INT64", (3,), items).tolist() == items
    assert from_json("x", "UINT64", (1,), [2**64 - 1]).tolist() == [2**64 - 1]
    assert from_json("x", "INT8", (2,), [1.0, -128]).tolist() == [1, -128]
    assert from_json("x", "INT8", (0, 3), []).shape == (0, 3)


def test_large_outputs_are_whole() -> None:
    values = np.arange(20_000)
    assert json.loads(to_json(values)) == values.tolist()


@pytest.mark.parametrize(
    ("datatype", "shape", "content", "message"),
    [
        ("INT8", (2,), b"123", "input 'x' has 3 bytes, expected 2 for INT8 of shape [2]"),
        ("FP32", (2, 2), b"", "input 'x' has 0 bytes, expected 16 for FP32 of shape [2, 2]"),
        ("FP32", (2**40, 2**40), b"", "has 0 bytes, expected 4835703278458516698824704"),
        ("BOOL", (2,), b"\0\2", "bytes that are neither 0 nor 1"),
        ("BYTES", (1,), b"\5\0\0\0abc", "text 0 ends after byte 9, and its data have 7 bytes"),
        ("BYTES", (1,), b"\1\0", "text 0 ends after byte 4"),
        ("BYTES", (2,), b"\0\0\0\0", "has 1 texts in 4 of its 4 bytes, expected 2"),
        ("BYTES", (1,), b"\0\0\0\0\0\0\0\0", "has 1 texts in 4 of its 8 bytes, expected 1"),
    ],
)
def test_bytes_that_do_not_fit(
    datatype: str, shape: tuple[int, ...], content: bytes, message: str
) -> None:
    assert message in refused(from_bytes, "x", datatype, shape, content)


@pytest.mark.parametrize(
    ("datatype", "data", "message"),
    [
        ("INT8", [1, 200], "is INT8 and has 200, expected -128 to 127"),
        ("UINT64", [1, -1], "is UINT64 and has -1, expected 0 to"),
        ("INT64", [1, 2**63], "has 9223372036854775808, expected"),
        ("INT64", [1, 10**400], "has 1000"),
        ("INT8", [1, 1.5], "is INT8 and has 1.5"),
        ("INT8", [1, float("nan")], "is INT8 and has nan"),
        ("INT8", [1, True], "is INT8 and has True"),
        ("INT8", [1, "one"], "is INT8 and has 'one'"),
        ("INT8", [1, None], "is INT8 and has None"),
        ("FP32", [1, 1e39], "is FP32 and has 1e+39"),
        ("FP32", [1, 10**400], "is FP32: "),
        ("BOOL", [True, 1], "is BOOL and has 1"),
        ("BYTES", ["a", 1], "is BYTES and has 1"),
        ("FP32", [1, 2, 3], "has data of shape [3], expected [2, 1] or [2]"),
        ("FP32", [[1, 2]], "has data of shape [1, 2], expected [2, 1] or [2]"),
        ("FP32", [[1], [2, 3]], "is FP32 and has [1]"),
        ("FP32", 3, "its data are 3, expected a list"),
        ("FP32", None, "its data are None, expected a list"),
    ],
)
def test_values_that_do_not_fit(datatype: str, data: Any, message: str) -> None:
    assert message in refused(from_json, "x", datatype, (2, 1), data)


@pytest.mark.parametrize("shape", [[-1, 2], [1.0], [True], ["1"], 3, None, [2**31, None]])
def test_shapes_that_are_none(shape: Any) -> None:
    assert "input 'x': its shape is" in refused(require_shape, "x", shape)


@pytest.mark.parametrize("datatype", ["FP8", "", None, 3, ["FP32"]])
def test_datatypes_that_are_none(datatype: Any) -> None:
    assert "expected one of BOOL, BYTES, FP16" in refused(require_datatype, "x", datatype)


def refused(function: Any, *arguments: Any) -> str:
    with pytest.raises(Refusal) as caught:
        function(*arguments)
    assert caught.value.kind is Kind.INVALID
    return caught.value.reason
