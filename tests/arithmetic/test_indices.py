"""Positions in a dimension and in a shape."""

import numpy as np
import pytest

from delegraph.arithmetic.indices import check_bounds, row_numbers
from delegraph.errors import OperatorError


@pytest.mark.parametrize(("position", "size"), [(-1, 3), (3, 3), (0, 0)])
def test_a_position_outside_is_named(position, size):
    with pytest.raises(OperatorError, match=rf"position {position} is outside \[0, {size}\)"):
        check_bounds(np.array([position]), size)


def test_no_positions_fit_any_size():
    check_bounds(np.empty(0, np.int32), 0)


def test_row_numbers_are_those_that_numpy_counts():
    shape = (3, 4, 2)
    indices = np.stack(np.unravel_index(np.arange(24), shape), -1)
    assert row_numbers(indices.reshape(4, 6, 3), shape).tolist() == [*range(24)]
