from __future__ import annotations

import pytest

from delegraph import Rejection


@pytest.mark.parametrize(
    ("rejection", "words"),
    [
        (Rejection("op"), "op"),
        (Rejection("op", tensor=0), "op (tensor 0)"),
        (Rejection("op", actual=0), "op: is 0"),
        (Rejection("rank", expected=0), "rank: needs 0"),
        (Rejection("rank", actual=5, expected=4, tensor=3), "rank: is 5, needs 4 (tensor 3)"),
        (Rejection("rank", "too many dimensions", 5, 4, 3), "too many dimensions"),
    ],
    ids=str,
)
def test_a_rejection_says_what_the_node_has_and_what_the_delegate_needs(
    rejection: Rejection, words: str
) -> None:
    assert str(rejection) == words
    assert rejection.to_json()["message"] == words
    assert not rejection


def test_a_rejection_is_text_in_json() -> None:
    shown = Rejection("dtype", actual=0, expected=(1, 2), tensor=0).to_json()
    assert shown == {
        "constraint": "dtype",
        "message": "dtype: is 0, needs (1, 2) (tensor 0)",
        "actual": "0",
        "expected": "(1, 2)",
        "tensor": 0,
    }
    assert Rejection("op").to_json()["actual"] is Rejection("op").to_json()["expected"] is None
