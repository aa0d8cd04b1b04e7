"""GATHER and GATHER_ND."""

import numpy as np
import pytest

from delegraph.schema.options import GatherOptions
from delegraph.testing import constant
from delegraph.testing.operator_case import fed, texts
from support.agreement import assert_agrees, assert_both_refuse

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
INDEX_TYPES = [np.int16, np.int32, np.int64]


@pytest.mark.parametrize("dtype", INDEX_TYPES)
@pytest.mark.parametrize("positions", [[0, 1], [1], [[1, 0], [0, 0]], 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_takes_slices_along_the_axis(axis, positions, dtype):
    inputs = [fed(X), fed(np.array(positions, dtype))]
    (y,) = assert_agrees("GATHER", inputs, ["FLOAT32"], GatherOptions(axis=axis), version=7)
    np.testing.assert_array_equal(y, X.take(positions, axis))


@pytest.mark.parametrize("dtype", ["f4", "u1", "i8"])
@pytest.mark.parametrize(("batch_dims", "axis"), [(1, 1), (1, 2), (-1, 1), (0, 1)])
def test_gather_walks_batches_of_both_inputs(batch_dims, axis, dtype):
    x, positions = fed(X.astype(dtype)), np.array([[0, 2], [1, 1]], np.int32)
    options = GatherOptions(axis=axis, batch_dims=batch_dims)
    kind = x.definition.type.name
    (y,) = assert_agrees("GATHER", [x, fed(positions)], [kind], options, version=5)
    if batch_dims:
        slow = [x.array[b].take(positions[b], axis - 1) for b in range(2)]
        np.testing.assert_array_equal(y, slow)


def test_gather_takes_strings():
    inputs = [fed(texts(b"a", b"b\0", b"cc")), fed(np.array([2, 1, 1], np.int32))]
    (y,) = assert_agrees("GATHER", inputs, ["STRING"], GatherOptions(), version=5)
    assert y.tolist() == [b"cc", b"b\0", b"b\0"]


def test_gather_takes_int4():
    inputs = [constant(np.arange(-4, 4).reshape(4, 2), "INT4"), fed(np.array([3, 0], np.int32))]
    (y,) = assert_agrees("GATHER", inputs, ["INT4"], GatherOptions(), version=7)
    assert y.tolist() == [[2, 3], [-4, -3]]


def test_gather_of_constants_is_computed_while_preparing():
    inputs = [constant(X), constant(np.array([1], np.int32))]
    assert_agrees("GATHER", inputs, ["FLOAT32"], GatherOptions())


@pytest.mark.parametrize("position", [-1, 2])
def test_gather_refuses_positions_outside(position):
    inputs = [fed(X), fed(np.array([position], np.int32))]
    match = rf"position {position} is outside \[0, 2\)"
    assert_both_refuse("GATHER", inputs, ["FLOAT32"], GatherOptions(), match=match)


@pytest.mark.parametrize(("axis", "batch_dims"), [(0, 1), (2, 2), (3, 0)])
def test_gather_refuses_axes_that_do_not_fit(axis, batch_dims):
    inputs = [fed(X), fed(np.zeros((2, 2), np.int32))]
    options = GatherOptions(axis=axis, batch_dims=batch_dims)
    assert_both_refuse("GATHER", inputs, ["FLOAT32"], options, match="batch_dims|differ|outside")


@pytest.mark.parametrize("dtype", INDEX_TYPES)
@pytest.mark.parametrize("indices", [[[0, 1], [1, 2]], [[0], [1]], [[0, 1, 1]], [0, 1], [[[0, 0]]]])
def test_gather_nd_takes_what_the_tuples_name(indices, dtype):
    inputs = [fed(X), fed(np.array(indices, dtype))]
    (y,) = assert_agrees("GATHER_ND", inputs, ["FLOAT32"], version=5)
    np.testing.assert_array_equal(y, X[tuple(np.moveaxis(np.array(indices), -1, 0))])


def test_gather_nd_takes_strings():
    inputs = [fed(texts(b"a", b"b", b"c\0")), fed(np.array([[2], [0]], np.int32))]
    (y,) = assert_agrees("GATHER_ND", inputs, ["STRING"], version=3)
    assert y.tolist() == [b"c\0", b"a"]


@pytest.mark.parametrize("indices", [[[2, 0]], [[-1, 0]], [[0, 0, 0, 0]]])
def test_gather_nd_refuses_tuples_outside(indices):
    inputs = [fed(X), fed(np.array(indices, np.int32))]
    assert_both_refuse("GATHER_ND", inputs, ["FLOAT32"], match="outside|at most 3")
