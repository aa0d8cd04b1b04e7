"""PACK and UNPACK."""

import numpy as np
import pytest

from delegraph.schema.options import PackOptions, UnpackOptions
from delegraph.testing import fed, tensor
from support.agreement import assert_agrees, assert_both_refuse

A = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_pack_stacks_along_a_new_axis(axis):
    options = PackOptions(values_count=2, axis=axis)
    (y,) = assert_agrees("PACK", [fed(A), fed(A + 10)], ["FLOAT32"], options)
    np.testing.assert_array_equal(y, np.stack([A, A + 10], axis))


def test_pack_stacks_scalars():
    inputs = [fed(np.float32(1)), fed(np.float32(2))]
    assert_agrees("PACK", inputs, ["FLOAT32"], PackOptions(values_count=2, axis=0))


@pytest.mark.parametrize("axis", [3, -4])
def test_pack_refuses_an_axis_outside(axis):
    options = PackOptions(values_count=2, axis=axis)
    assert_both_refuse("PACK", [fed(A), fed(A)], ["FLOAT32"], options, match="outside")


def test_pack_refuses_inputs_of_another_scale():
    x = np.ones(2, np.int8)
    inputs = [fed(x, scale=0.5), fed(x, scale=0.25)]
    outputs = [tensor((2, 2), "INT8", scale=0.5)]
    options = PackOptions(values_count=2)
    assert_both_refuse("PACK", inputs, outputs, options, match="input 1 has scale 0.25", version=2)


@pytest.mark.parametrize(("axis", "count"), [(0, 2), (1, 3), (-1, 3)])
def test_unpack_gives_the_slices(axis, count):
    options = UnpackOptions(num=count, axis=axis)
    parts = assert_agrees("UNPACK", [fed(A)], ["FLOAT32"] * count, options)
    np.testing.assert_array_equal(parts, np.moveaxis(A, axis, 0))


def test_unpack_gives_scalars():
    assert_agrees("UNPACK", [fed(A[0])], ["FLOAT32"] * 3, UnpackOptions(num=3, axis=0))


def test_unpack_refuses_another_number_of_outputs():
    options = UnpackOptions(num=3, axis=2)
    assert_both_refuse("UNPACK", [fed(A)], ["FLOAT32"] * 3, options, match="outside")


def test_another_count_of_inputs_is_refused():
    inputs = [fed(np.ones(3, np.float32))]
    options = PackOptions(values_count=2)
    assert_both_refuse("PACK", inputs, ["FLOAT32"], options, match="1 inputs, expected the 2")


def test_nothing_is_not_unpacked():
    inputs, options = [fed(np.ones((0, 2), np.float32))], UnpackOptions(num=2, axis=1)
    assert_both_refuse("UNPACK", inputs, ["FLOAT32"] * 2, options, match="has no elements")
