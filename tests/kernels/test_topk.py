"""TOPK_V2."""

import numpy as np
import pytest

from delegraph.testing import constant, fed
from support.agreement import assert_agrees, assert_both_refuse


@pytest.mark.parametrize("dtype", ["f4", "u1", "i1", "i2", "i4", "i8"])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_equal_values_come_in_the_order_of_their_positions(k, dtype, given):
    x = fed(np.random.default_rng(k).integers(0, 3, (3, 5)).astype(dtype))
    inputs = [x, given(np.array(k, np.int32))]
    outputs = [x.definition.type.name, "INT32"]
    values, positions = assert_agrees("TOPK_V2", inputs, outputs, version=3)
    for row, best, places in zip(x.array, values, positions, strict=True):
        slow = sorted(range(5), key=lambda i: (-int(row[i]), i))[:k]
        assert places.tolist() == slow
        assert best.tolist() == row[slow].tolist()


@pytest.mark.parametrize("k", [1, 5, 40])
def test_long_rows_agree(k):
    x = np.random.default_rng(k).integers(0, 20, (4, 200)).astype(np.float32)
    inputs = [fed(x), fed(np.array(k, np.int32))]
    assert_agrees("TOPK_V2", inputs, ["FLOAT32", "INT32"])


@pytest.mark.parametrize("k", [1, 4, 7])
def test_nan_comes_last(k):
    x = np.float32([[np.nan, 1, 3, 2, -np.inf, np.nan, 3], [0, np.inf, np.nan, -1, 5, -0.0, 2]])
    inputs = [fed(x), fed(np.array(k, np.int32))]
    outputs = ["FLOAT32", "INT32"]
    _, positions = assert_agrees("TOPK_V2", inputs, outputs)
    expected = [[2, 6, 3, 1, 4, 0, 5], [1, 4, 6, 0, 5, 3, 2]]
    assert positions.tolist() == [row[:k] for row in expected]


def test_more_than_there_are_is_refused(given):
    inputs = [fed(np.ones((2, 3), np.float32)), given(np.array(4, np.int32))]
    outputs = ["FLOAT32", "INT32"]
    assert_both_refuse("TOPK_V2", inputs, outputs, match="k is 4, expected at most 3")


def test_a_negative_k_selects_nothing():
    inputs = [fed(np.float32([1, 2])), constant(np.int32(-1))]
    (values, _) = assert_agrees("TOPK_V2", inputs, ["FLOAT32", "INT32"])
    assert values.shape == (0,)


def test_positions_may_be_int16():
    inputs = [fed(np.float32([1, 3, 2])), constant(np.int16(2))]
    assert_agrees("TOPK_V2", inputs, ["FLOAT32", "INT16"], version=3)


def test_other_types_are_refused():
    inputs = [fed(np.array([True])), constant(np.int32(1))]
    outputs = ["BOOL", "INT32"]
    assert_both_refuse("TOPK_V2", inputs, outputs, match="has type BOOL")
