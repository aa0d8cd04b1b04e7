"""Roll, which the official Python package does not register, against NumPy."""

import numpy as np
import pytest

from delegraph.testing import delegraph_outputs, fed
from support.agreement import model_and_arrays


def rolled(x, shift, axis, dtype=np.int32):
    inputs = [fed(x), fed(np.array(shift, dtype)), fed(np.array(axis, dtype))]
    kind = inputs[0].definition.type.name
    return delegraph_outputs(*model_and_arrays("Roll", inputs, [kind]))[0]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("shift", "axis"), [(1, 0), (-1, 1), ([2], [-1]), ([1, 2], [0, 1]), ([5, -7], [1, 1])]
)
def test_elements_move_round_the_end(shift, axis, dtype):
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_array_equal(rolled(x, shift, axis, dtype), np.roll(x, shift, axis))


def test_shifts_without_axes_are_refused():
    with pytest.raises(RuntimeError, match=r"\[2\] shifts along \[1\] axes"):
        rolled(np.zeros((2, 2), np.int8), [1, 2], [0])


def test_an_axis_that_is_none_is_refused():
    with pytest.raises(RuntimeError, match="axis 2 is outside"):
        rolled(np.zeros((2, 2), np.int8), [1], [2])
