"""Messages between processes: what they hold, and that reading them runs nothing."""

from __future__ import annotations

import io
import json
import struct
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from delegraph.errors import (
    DelegateLibraryError,
    DelegateNodeError,
    DelegraphError,
    TimeLimitError,
    UnknownDelegateError,
)
from delegraph.processes import messages
from support.worker_object import Pair


class Colour(IntEnum):
    RED = 1


class Point(NamedTuple):
    x: int


def sent(value: Any, *records: type) -> Any:
    stream = io.BytesIO()
    messages.write(stream, value)
    stream.seek(0)
    return messages.read(stream, records)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -(1 << 70),
        float("inf"),
        "é\x00",
        b"\x00\xff",
        Path("a/b"),
        [1, (2, [3])],
        {"a": 1, 2: {"tuple": ()}, ("b", 1): None},
        {"dict": [1]},
        np.int8,
        np.bytes_,
        np.float32(1.5),
        Colour.RED,
        Point(1),
    ],
)
def test_values_come_as_they_went(value: Any) -> None:
    found = sent(value, Colour, Point)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=">i4").reshape(2, 3),
        np.arange(6.0).reshape(2, 3).T,
        np.array(5, np.complex64),
        np.zeros((0, 3)),
        np.array([b"ab", b""]),
        np.array(["", ""]),
        np.array([[b"a\x00", b""]], object),
        np.array([], object),
    ],
)
def test_arrays_come_as_they_went(array: np.ndarray[Any, Any]) -> None:
    found = sent(Pair("x", array), Pair).array
    np.testing.assert_array_equal(found, array)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.flags.writeable


def test_types_that_numpy_lacks_come_as_they_went() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    found = sent([np.ones(2, ml_dtypes.bfloat16), ml_dtypes.bfloat16])
    assert found[0].dtype.type is found[1] is ml_dtypes.bfloat16
    assert found[0].tolist() == [1, 1]


class OwnError(UnknownDelegateError):
    """What another process may not have."""


@pytest.mark.parametrize("kind", [DelegateLibraryError, TimeLimitError])
def test_errors_of_two_built_in_classes_come_as_they_went(kind: type[DelegraphError]) -> None:
    found = sent(kind("why"))
    assert type(found) is kind
    assert str(found) == "why"


def test_our_errors_come_with_their_attributes_and_others_in_words() -> None:
    error = DelegateNodeError("why", node_index=7, op="ADD", delegate="x", phase="eval")
    found = sent(error)
    assert type(found) is DelegateNodeError
    assert (str(found), vars(found)) == ("why", vars(error))
    assert type(sent(OwnError("why"))) is UnknownDelegateError
    assert repr(sent(ValueError("why"))) == "DelegraphError('ValueError: why')"
    odd = DelegraphError("why")
    odd.thing = object()  # type: ignore[attr-defined]  # on purpose
    assert repr(sent(odd)) == "DelegraphError('why')"


def test_what_cannot_be_sent_is_named_and_nothing_is_written() -> None:
    stream = io.BytesIO()
    with pytest.raises(TypeError, match="a complex cannot be sent to"):
        messages.write(stream, [1, 1j])
    assert stream.getvalue() == b""


def message(plain: Any, *sizes: int) -> bytes:
    text = json.dumps([plain, sizes]).encode()
    return struct.pack("<4sQ", b"DgM1", len(text)) + text


@pytest.mark.parametrize(
    "content",
    [
        b"print('hello')",
        struct.pack("<4sQ", b"DgM1", 1 << 62),
        struct.pack("<4sQ", b"DgM1", 3) + b"\xff{}",
        message({"record": ["Path", {}]}),
        message({"record": ["Pair", {"other": 1}]}),
        message({"array": ["O", [1], 0]}, 8) + bytes(8),
        message({"array": ["<f4", [3], 0]}, 8) + bytes(8),
        message({"bytes": 0}, -1),
        message({"error": {"tuple": ["in_words", {"tuple": []}, {"dict": []}]}}),
        message({"unknown": 1}),
        message({}),
        b"".join([struct.pack("<4sQ", b"DgM1", 200_006), b"[" * 100_000, b"]" * 100_006]),
    ],
)
def test_what_cannot_be_read_is_an_error(content: bytes) -> None:
    with pytest.raises(OSError):  # noqa: PT011 - the texts of many causes
        messages.read(io.BytesIO(content), [Pair])


@pytest.mark.parametrize("content", [b"", b"DgM1", message({"bytes": 0}, 8)])
def test_a_broken_pipe_is_the_end(content: bytes) -> None:
    with pytest.raises(EOFError):
        messages.read(io.BytesIO(content))
