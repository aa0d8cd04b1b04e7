"""SPARSE_TO_DENSE."""

import numpy as np
import pytest

from delegraph.schema.options import SparseToDenseOptions
from delegraph.testing import constant, fed
from support.agreement import assert_agrees, assert_both_refuse


@pytest.mark.parametrize("dtype", ["f4", "i4", "i8", "u1", "i1"])
@pytest.mark.parametrize(
    ("indices", "shape", "values"),
    [
        ([1, 3], [5], [7, 8]),
        (2, [4], 9),
        ([[0, 1], [1, 2]], [2, 3], [5, 6]),
        ([[0, 1], [1, 2]], [2, 3], 4),
        ([1, 1], [3], [5, 6]),
    ],
)
def test_values_stand_where_the_indices_point(indices, shape, values, dtype, given):
    indices, values = np.array(indices, np.int32), fed(np.array(values, dtype))
    default = constant(np.array(1, dtype))
    inputs = [fed(indices), given(np.array(shape, np.int32)), values, default]
    kind = values.definition.type.name
    (y,) = assert_agrees("SPARSE_TO_DENSE", inputs, [kind], SparseToDenseOptions(), version=3)
    slow = np.ones(shape, dtype)
    tuples = indices.reshape(-1, len(shape))
    for place, value in zip(tuples, np.broadcast_to(values.array, len(tuples)), strict=True):
        slow[tuple(place)] = value
    np.testing.assert_array_equal(y, slow)


def test_indices_of_another_rank_are_refused():
    inputs = [fed(np.array([[0, 1]], np.int32)), constant(np.array([3], np.int32))]
    inputs += [fed(np.array([5], np.float32)), constant(np.float32(0))]
    options = SparseToDenseOptions()
    assert_both_refuse("SPARSE_TO_DENSE", inputs, ["FLOAT32"], options, match="do not fit rank 1")


def test_other_types_are_refused():
    inputs = [
        constant(np.int32([[1]])),
        constant(np.int32([3])),
        fed(np.int16([5])),
        fed(np.int16([0])),
    ]
    options = SparseToDenseOptions()
    assert_both_refuse("SPARSE_TO_DENSE", inputs, ["INT16"], options, match="has type INT16")
