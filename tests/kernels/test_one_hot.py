"""ONE_HOT."""

import numpy as np
import pytest

from delegraph.schema.options import OneHotOptions
from delegraph.testing import constant
from delegraph.testing.operator_case import fed
from support.agreement import assert_agrees


@pytest.mark.parametrize("given", [constant, fed])
@pytest.mark.parametrize("axis", [-1, 0, 1, 2])
@pytest.mark.parametrize(("dtype", "on", "off"), [("f4", 2.5, -1), ("i1", 3, 0), ("?", 1, 0)])
def test_the_on_value_marks_the_index(dtype, on, off, axis, given):
    indices = np.array([[0, 2], [5, -1]], np.int32)
    values = [constant(np.array(value, dtype)) for value in (on, off)]
    inputs = [fed(indices), given(np.array(3, np.int32)), *values]
    (y,) = assert_agrees("ONE_HOT", inputs, [values[0].type.name], OneHotOptions(axis=axis))
    slow = np.full((2, 2, 3), off, dtype)
    slow[0, 0, 0] = slow[0, 1, 2] = on
    np.testing.assert_array_equal(y, np.moveaxis(slow, -1, axis))
