from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph.tools.model_outputs import Score, best_classes, holds_scores, summarize

PLAIN: dict[str, Any] = {"name": "y", "index": 7, "quantization": (0.0, 0)}
QUANTIZED: dict[str, Any] = {"name": "y", "index": 7, "quantization": (0.5, 10)}


def test_best_classes_come_first_and_ties_go_to_the_lower_index() -> None:
    values = np.float32([[1, 3, 2, 3]])
    assert best_classes(values, PLAIN, (), 3) == (
        Score(1, 3.0, None),
        Score(3, 3.0, None),
        Score(2, 2.0, None),
    )


def test_scores_are_dequantised() -> None:
    (best,) = best_classes(np.uint8([0, 12]), QUANTIZED, ("a", "b"), 1)
    assert best == Score(1, 1.0, "b")


def test_one_label_less_than_classes_leaves_class_0_to_the_background() -> None:
    found = best_classes(np.float32([2, 1, 0]), PLAIN, ("a", "b"), 3)
    assert [score.label for score in found] == ["background", "a", "b"]


@pytest.mark.parametrize(
    ("shape", "dtype", "labels", "expected"),
    [
        ((1, 10), "f4", 0, True),
        ((1, 1, 1, 1001), "u1", 0, True),
        ((10,), "i1", 0, True),
        ((1, 9), "f4", 0, False),
        ((1, 9), "f4", 9, True),
        ((1, 10), "f4", 9, True),
        ((1, 10), "f4", 4, False),
        ((1, 2), "f4", 2, True),
        ((2, 1), "f4", 2, True),
        ((3, 1), "f4", 2, False),
        ((2, 10), "f4", 0, False),
        ((1, 10, 4), "f4", 0, False),
        ((1, 10), "i8", 0, False),
        ((1, 10), "?", 0, False),
        ((), "f4", 0, False),
    ],
)
def test_scores_are_told_by_shape_and_labels(
    shape: tuple[int, ...], dtype: str, labels: int, expected: bool
) -> None:
    assert holds_scores(np.zeros(shape, dtype), ["label"] * labels) is expected


def test_other_outputs_are_summed_up() -> None:
    summary = summarize(np.arange(12, dtype=np.int32).reshape(3, 4), PLAIN)
    assert (summary.dtype, summary.shape, summary.top) == ("int32", (3, 4), ())
    assert (summary.minimum, summary.maximum) == (0, 11)
    assert summary.first == tuple(range(8))


def test_stored_integers_come_with_their_scale() -> None:
    values = np.arange(12, dtype=np.int8).reshape(3, 4)
    summary = summarize(values, QUANTIZED)
    assert (summary.scale, summary.zero_point) == (0.5, 10)
    assert summarize(values, PLAIN).scale is None
    assert summarize(values.astype(np.float32), QUANTIZED).zero_point is None


@pytest.mark.parametrize(
    ("values", "first"),
    [
        (np.array([b"a", b"\xff"], object), ("a", "\ufffd")),
        (np.complex64([1 + 2j]), ("(1+2j)",)),
        (np.zeros((0, 3), np.float32), ()),
        (np.bool_([True]), (True,)),
        (np.float32(2), (2.0,)),
    ],
)
def test_odd_outputs_are_summed_up_too(values: Any, first: tuple[Any, ...]) -> None:
    assert summarize(values, PLAIN).first == first


def test_nan_is_counted_apart_from_the_range() -> None:
    details = {"name": "y", "index": 0, "quantization": (0.0, 0)}
    summary = summarize(np.array([np.nan, 2, np.nan, -1], np.float32), details)
    assert (summary.minimum, summary.maximum, summary.nan_count) == (-1, 2, 2)
    nothing = summarize(np.full(3, np.nan, np.float32), details)
    assert (nothing.minimum, nothing.maximum, nothing.nan_count) == (None, None, 3)
