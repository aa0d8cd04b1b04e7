"""DILATE."""

import numpy as np
import pytest

from delegraph.testing import constant, delegraph_outputs
from delegraph.testing.operator_case import fed, texts
from support.agreement import assert_agrees, assert_both_refuse, model_and_arrays

X = np.arange(1, 13, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize("dtype", ["f4", "i4", "i8", "u1", "i1", "i2"])
@pytest.mark.parametrize("steps", [(1, 1), (2, 3), (1, 4)])
def test_dilate_spreads_the_elements(steps, dtype, given):
    x = fed(X.astype(dtype))
    inputs = [x, given(np.array(steps, np.int32)), constant(np.array(7, dtype))]
    (y,) = assert_agrees("DILATE", inputs, [x.definition.type.name])
    np.testing.assert_array_equal(y[:: steps[0], :: steps[1]], x.array)
    assert (y == 7).sum() == y.size - X.size + (x.array == 7).sum()


def test_of_several_padding_values_the_first_counts():
    inputs = [fed(X), constant(np.int32([2, 2])), constant(np.float32([7, 8]))]
    assert_agrees("DILATE", inputs, ["FLOAT32"])


def test_dilate_refuses_steps_below_one(given):
    inputs = [fed(X), given(np.array([0, 1], np.int32)), constant(np.float32(0))]
    model, arrays = model_and_arrays("DILATE", inputs, ["FLOAT32"])
    with pytest.raises(RuntimeError, match="at least 1"):
        delegraph_outputs(model, arrays)


def test_strings_are_refused():
    inputs = [fed(texts(b"a")), constant(np.int32([2])), fed(texts(b"b"))]
    assert_both_refuse("DILATE", inputs, ["STRING"], match="input is STRING")


def test_nothing_cannot_be_moved_apart():
    inputs = [fed(X[:0]), constant(np.int32([2, 1])), constant(np.float32(0))]
    assert_both_refuse("DILATE", inputs, ["FLOAT32"], match="move apart")
