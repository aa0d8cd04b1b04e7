from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph.delegation.tolerance import Tolerance
from delegraph.tools.differing.array_metrics import AT_ONCE
from delegraph.tools.differing.metrics import tensor_difference
from delegraph.tools.differing.tolerances import outside

INTEGERS = [np.array([0, 1, 2, 3, 4, 8], np.int8), np.array([0, 1, 2, 3, 4, 8], np.int64)]
NAN, INF = np.nan, np.inf
FLOATS = [
    np.float32([0, 0.5, 1, 1.5, -2, NAN, INF, -INF]),
    np.float16([0, 0.5, 1, 1.5, -2, NAN, INF, -INF]),
]


@pytest.mark.parametrize("absolute", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 7.0, 9.0])
@pytest.mark.parametrize("test", [*INTEGERS, *FLOATS], ids=lambda array: array.dtype.name)
def test_elements_outside_are_those_that_exceed_the_tolerance(test: Any, absolute: float) -> None:
    for right in (np.zeros_like(test), np.roll(test, 1), test):
        difference = tensor_difference(test, right, {}, {})
        count = outside(difference, test, right, {}, {}, Tolerance(absolute=absolute))
        excess = Tolerance(absolute=absolute).compare(test, right)
        assert count == np.count_nonzero(excess > 0)


def test_each_piece_counts() -> None:
    right = np.zeros((3, AT_ONCE), np.float32)
    test = right.copy()
    test[:, 5] = 2
    difference = tensor_difference(test, right, {}, {})
    assert outside(difference, test, right, {}, {}, Tolerance(absolute=1)) == 3


def test_strings_are_outside_where_they_differ() -> None:
    test, right = np.array([b"a", b"b"], object), np.array([b"a", b"c"], object)
    difference = tensor_difference(test, right, {}, {})
    assert outside(difference, test, right, {}, {}, Tolerance(absolute=5)) == 1
