"""TILE."""

import numpy as np
import pytest

from delegraph.testing import constant, delegraph_outputs
from delegraph.testing.operator_case import fed, texts
from support.agreement import assert_agrees, assert_both_refuse, model_and_arrays

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("times", [(2, 3), (1, 1), (3, 1)])
def test_each_dimension_is_repeated(times, dtype, given):
    inputs = [fed(X), given(np.array(times, dtype))]
    (y,) = assert_agrees("TILE", inputs, ["FLOAT32"])
    np.testing.assert_array_equal(y, np.tile(X, times))


def test_strings_are_repeated(given):
    inputs = [fed(texts(b"a", b"b\0")), given(np.array([2], np.int64))]
    (y,) = assert_agrees("TILE", inputs, ["STRING"])
    assert y.tolist() == [b"a", b"b\0"] * 2


def test_negative_multiples_are_refused(given):
    inputs = [fed(X), given(np.array([-1, 1], np.int32))]
    assert_both_refuse("TILE", inputs, ["FLOAT32"], match="negative")


@pytest.mark.parametrize("shape", [(1, 2), (0, 2)])
def test_a_dimension_that_no_int32_holds_is_refused(shape, given):
    inputs = [fed(np.zeros(shape, np.float32)), given(np.array([1, 1 << 40], np.int64))]
    assert_both_refuse("TILE", inputs, ["FLOAT32"], match="from 0 to 2147")


def test_int4_is_refused():
    inputs = [constant(np.ones((2, 3)), "INT4"), constant(np.array([1, 2], np.int32))]
    model, arrays = model_and_arrays("TILE", inputs, ["INT4"])
    with pytest.raises(RuntimeError, match="INT4, which this operator does not take"):
        delegraph_outputs(model, arrays)
