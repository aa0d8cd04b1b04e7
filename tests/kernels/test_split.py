"""SPLIT and SPLIT_V."""

import numpy as np
import pytest

from delegraph.schema.options import SplitOptions, SplitVOptions
from delegraph.testing import constant, fed
from support.agreement import assert_agrees, assert_both_refuse

X = np.arange(48, dtype=np.float32).reshape(4, 6, 2)


def ints(values):
    return np.array(values, np.int32)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_split_gives_equal_parts(axis, given):
    inputs = [given(ints(axis)), fed(X)]
    parts = assert_agrees("SPLIT", inputs, ["FLOAT32"] * 2, SplitOptions(num_splits=2))
    np.testing.assert_array_equal(parts, np.split(X, 2, axis))


@pytest.mark.parametrize(("axis", "parts"), [(3, 2), (0, 3)])
def test_split_refuses_what_does_not_divide(axis, parts, given):
    inputs = [given(ints(axis)), fed(X)]
    options = SplitOptions(num_splits=parts)
    assert_both_refuse("SPLIT", inputs, ["FLOAT32"] * parts, options, match="outside|cannot be spl")


@pytest.mark.parametrize("sizes", [(1, 3, 2), (-1, 1, 2), (6, 0, -1)])
def test_split_v_gives_parts_of_the_sizes(sizes, given):
    inputs = [fed(X[:, :, :1].reshape(4, 6)), given(ints(sizes)), given(ints(1))]
    if 0 in sizes:  # the official Python API cannot return an empty dynamic tensor
        inputs[1:] = [constant(ints(sizes)), constant(ints(1))]
    assert_agrees("SPLIT_V", inputs, ["FLOAT32"] * 3, SplitVOptions(num_splits=3))


@pytest.mark.parametrize("sizes", [(2, 2, 1), (-1, -1, 6), (7, -1, 0)])
def test_split_v_refuses_sizes_that_do_not_add_up(sizes, given):
    inputs = [fed(X), given(ints(sizes)), given(ints(1))]
    options = SplitVOptions(num_splits=3)
    assert_both_refuse("SPLIT_V", inputs, ["FLOAT32"] * 3, options, match="do not add up")
