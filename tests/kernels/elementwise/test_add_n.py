"""ADD_N."""

import numpy as np
import pytest

from delegraph.testing.operator_case import fed
from support.agreement import assert_agrees, assert_both_refuse


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_all_inputs_are_added(dtype, count):
    xs = [np.arange(6).reshape(2, 3).astype(dtype) * i for i in range(count)]
    (y,) = assert_agrees("ADD_N", [fed(x) for x in xs], [dtype.upper()])
    np.testing.assert_array_equal(y, sum(xs))


def test_one_input_is_refused():
    inputs = [fed(np.float32([1]))]
    assert_both_refuse("ADD_N", inputs, ["FLOAT32"], match="has 1 inputs, expected two or more")


def test_two_shapes_are_refused():
    inputs = [fed(np.ones(3, np.float32)), fed(np.ones(2, np.float32))]
    assert_both_refuse("ADD_N", inputs, ["FLOAT32"], match="expected one")
