"""DYNAMIC_UPDATE_SLICE."""

import numpy as np
import pytest

from delegraph.testing import constant, fed
from support.agreement import assert_agrees, assert_both_refuse


@pytest.mark.parametrize("dtype", ["f4", "u1", "i1", "i4", "i8", "?"])
@pytest.mark.parametrize(
    ("start", "row", "column"), [((0, 0), 0, 0), ((1, 2), 1, 2), ((5, 5), 1, 2), ((-3, 1), 0, 1)]
)
def test_the_block_is_moved_inside(start, row, column, dtype):
    x, update = fed(np.zeros((3, 4), dtype)), fed(np.ones((2, 2), dtype))
    inputs = [x, update, fed(np.array(start, np.int32))]
    kind = x.definition.type.name
    (y,) = assert_agrees("DYNAMIC_UPDATE_SLICE", inputs, [kind], version=5)
    slow = x.array.copy()
    slow[row : row + 2, column : column + 2] = 1
    np.testing.assert_array_equal(y, slow)


def test_an_update_larger_than_the_operand_is_refused():
    inputs = [np.zeros((3, 4), np.float32), np.zeros((4, 2), np.float32), np.zeros(2, np.int32)]
    assert_both_refuse(
        "DYNAMIC_UPDATE_SLICE", [*map(fed, inputs)], ["FLOAT32"], match="larger than"
    )


def test_int4_is_updated_by_elements():
    x = constant(np.arange(-4, 5).reshape(3, 3), "INT4")
    update = constant(np.array([[7, 6]]), "INT4")
    inputs = [x, update, fed(np.array([1, 1], np.int32))]
    (y,) = assert_agrees("DYNAMIC_UPDATE_SLICE", inputs, ["INT4"], version=4)
    assert y.tolist() == [[-4, -3, -2], [-1, 7, 6], [2, 3, 4]]
