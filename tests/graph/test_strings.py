from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from delegraph.errors import MalformedModelError
from delegraph.graph.strings import decode_strings, encode_strings


@given(st.lists(st.binary(max_size=9), max_size=9))
def test_what_is_encoded_is_decoded_equal(strings: list[bytes]) -> None:
    array = np.array(strings, object).reshape(len(strings))
    assert decode_strings(encode_strings(array), array.shape).tolist() == strings


def test_text_is_stored_as_utf8() -> None:
    raw = encode_strings(np.array(["é"], object))
    assert decode_strings(raw, (1,)).tolist() == ["é".encode()]


def test_the_layout_is_count_offsets_characters() -> None:
    raw = encode_strings(np.array([b"ab", b"", b"c"], object))
    assert raw[:20].view("<i4").tolist() == [3, 20, 22, 22, 23]
    assert raw[20:].tobytes() == b"abc"


def test_a_scalar_is_one_string() -> None:
    assert decode_strings(encode_strings(np.array(b"x", object)), ()).item() == b"x"


def test_bytes_behind_the_last_string_do_not_count() -> None:
    raw = np.append(encode_strings(np.array([b"x"], object)), np.zeros(5, np.uint8))
    assert decode_strings(raw, (1,)).tolist() == [b"x"]


def damaged(index: int, value: int) -> np.ndarray:
    raw = encode_strings(np.array([b"one", b"two"], object)).copy()
    raw[4 * index : 4 * index + 4] = np.frombuffer(np.int32(value).tobytes(), np.uint8)
    return raw


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (np.zeros(3, np.uint8), "has 3 bytes, too few for a count"),
        (np.zeros(4, np.uint8), "of 4 bytes cannot hold 0 strings"),
        (damaged(0, 1 << 30), "of 22 bytes cannot hold 1073741824 strings"),
        (damaged(0, -1), "of 22 bytes cannot hold -1 strings"),
        (damaged(0, 1), "of shape (2,) holds 1 strings"),
        (damaged(1, 8), "has damaged offsets"),
        (damaged(2, 15), "has damaged offsets"),
        (damaged(2, 99), "has damaged offsets"),
        (damaged(3, 23), "has damaged offsets"),
        (damaged(3, -5), "has damaged offsets"),
    ],
)
def test_damage_is_refused(raw: np.ndarray, message: str) -> None:
    with pytest.raises(MalformedModelError, match=re.escape(message)):
        decode_strings(raw, (2,))
