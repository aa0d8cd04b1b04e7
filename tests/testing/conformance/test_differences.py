"""Tolerances are per type, and NaN equals NaN."""

from __future__ import annotations

import re

import numpy as np
import pytest

from delegraph import TensorType, Tolerance
from delegraph.testing.conformance.differences import array_difference

FLOAT, INT = TensorType.FLOAT32, TensorType.INT8


@pytest.mark.parametrize(
    ("got", "right", "type", "tolerance"),
    [
        (np.float32([1, np.nan, np.inf]), np.float32([1, np.nan, np.inf]), FLOAT, Tolerance()),
        (np.float32([1.01]), np.float32([1]), FLOAT, Tolerance(relative=0.02)),
        (np.float32([0.01]), np.float32([0]), FLOAT, Tolerance(absolute=0.02)),
        (np.int8([-128, 5]), np.int8([-127, 4]), INT, Tolerance(absolute=1)),
        (np.array([b"a"], object), np.array([b"a"], object), TensorType.STRING, Tolerance()),
        (np.zeros((0, 3), np.int8), np.zeros((0, 3), np.int8), INT, Tolerance()),
    ],
)
def test_close_results_do_not_differ(got, right, type, tolerance) -> None:
    assert array_difference(got, right, type, tolerance) == ""


@pytest.mark.parametrize(
    ("got", "right", "type", "tolerance", "message"),
    [
        (np.float32([1, 2]), np.float32([1]), FLOAT, Tolerance(), r"shape \[2\], expected \[1\]"),
        (np.float32([np.nan]), np.float32([1]), FLOAT, Tolerance(1, 1), "nan instead of 1.0"),
        (
            np.float32([[1, 2], [3, 5]]), np.float32([[1, 2], [3, 4]]), FLOAT, Tolerance(0.1),
            r"1 of 4 FLOAT32 values differ, first at \[1, 1\]: 5.0 instead of 4.0 \(allowed: 0.1",
        ),
        (np.int8([127]), np.int8([-128]), INT, Tolerance(absolute=1), "127 instead of -128"),
        (np.int8([1]), np.int8([2]), INT, Tolerance(), "allowed: no difference"),
        (
            np.array([b"a"], object), np.array([b"b"], object), TensorType.STRING, Tolerance(),
            "b'a' instead of b'b'",
        ),
        (np.array(True), np.array(False), TensorType.BOOL, Tolerance(), r"first at \[\]: True"),
    ],
)  # fmt: skip
def test_difference_is_described(got, right, type, tolerance, message) -> None:
    assert re.search(message, array_difference(got, right, type, tolerance))


def test_of_random_numbers_only_the_shape_counts() -> None:
    assert array_difference(np.float32([1]), np.float32([2]), FLOAT, None) == ""
