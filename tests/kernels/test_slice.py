"""SLICE."""

import numpy as np
import pytest

from delegraph.testing import constant
from delegraph.testing.operator_case import fed, texts
from support.agreement import assert_agrees, assert_both_refuse

X = np.arange(8, dtype=np.float32).reshape(2, 4)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(("begin", "size"), [((0, 1), (2, 2)), ((1, 0), (-1, -1))])
def test_the_block_is_copied(begin, size, dtype, given):
    inputs = [fed(X), given(np.array(begin, dtype)), given(np.array(size, dtype))]
    (y,) = assert_agrees("SLICE", inputs, ["FLOAT32"], version=1)
    (r, c), (h, w) = begin, [n if n >= 0 else 9 for n in size]
    np.testing.assert_array_equal(y, X[r : r + h, c : c + w])


@pytest.mark.parametrize(
    ("begin", "size"), [((1, 2), (1, 3)), ((-1, 0), (1, 1)), ((0, 0), (-2, 1)), ((3, 0), (-1, 1))]
)
def test_a_block_outside_is_refused(begin, size, given):
    inputs = [fed(X), given(np.array(begin, np.int32)), given(np.array(size, np.int32))]
    assert_both_refuse("SLICE", inputs, ["FLOAT32"], match="do not lie inside")


def test_strings_are_sliced():
    inputs = [fed(texts(b"a", b"b\0", b"c")), *map(constant, np.array([[1], [2]], np.int32))]
    (y,) = assert_agrees("SLICE", inputs, ["STRING"], version=3)
    assert y.tolist() == [b"b\0", b"c"]


def test_int4_is_sliced_by_elements():
    x = constant(np.arange(-4, 5).reshape(3, 3), "INT4")
    inputs = [x, *map(constant, np.array([[1, 0], [2, 3]], np.int32))]
    (y,) = assert_agrees("SLICE", inputs, ["INT4"], version=7)
    assert y.tolist() == [[-1, 0, 1], [2, 3, 4]]
