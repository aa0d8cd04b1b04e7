"""One comparison for all who judge a delegate's results."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from delegraph import Tolerance
from delegraph.errors import ArgumentError


def test_a_negative_part_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"relative=-1.*has a negative part"):
        Tolerance(relative=-1)


def test_the_excess_is_what_the_tolerance_leaves() -> None:
    found, expected = np.float32([1.5, 5.5, -6.0]), np.float32([1.0, 4.0, -4.0])
    excess = Tolerance(relative=0.25, absolute=0.5).compare(found, expected)
    assert excess.tolist() == [-0.25, 0.0, 0.5]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.complex64])
def test_special_values_equal_only_their_like(dtype: type) -> None:
    special = np.array([np.nan, np.inf, -np.inf]).astype(dtype)
    loose = Tolerance(9, 9)
    assert not (loose.compare(special, special) > 0).any()
    assert (loose.compare(special, special[::-1])[[0, 2]] == np.inf).all()
    assert (loose.compare(special, np.ones(3).astype(dtype)) == np.inf).all()


def test_integers_that_float64_cannot_tell_apart_are_one_apart() -> None:
    found, expected = np.array([2**62 + 1, 7]), np.array([2**62, 7])
    assert Tolerance().compare(found, expected).tolist() == [1, 0]
    assert Tolerance(absolute=1).compare(found, expected).tolist() == [0, 0]
    below, expected = np.array([-(2**62) - 1]), np.array([-(2**62)])
    assert Tolerance(relative=2**-63).compare(below, expected).tolist() == [0.5]


@pytest.mark.parametrize("values", [[True, False], np.array([b"a", b"b"], object)])
def test_strings_and_bools_are_exact_whatever_the_tolerance(values: object) -> None:
    found = np.array(values)
    assert Tolerance(9, 9).compare(found, found[::-1]).tolist() == [1, 1]
    assert Tolerance().compare(found, found).tolist() == [0, 0]


def test_numbers_without_dimensions_are_compared() -> None:
    assert Tolerance(absolute=0.5).compare(np.float32(3), np.float32(2)).tolist() == 0.5


def test_garbage_is_compared_without_a_warning() -> None:
    garbage = np.array([0x7FA00000], np.uint32).view(np.float32)  # a signalling NaN
    assert Tolerance().compare(garbage, np.ones(1, np.float32)) == np.inf
