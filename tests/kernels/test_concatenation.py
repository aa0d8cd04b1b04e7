"""CONCATENATION."""

import numpy as np
import pytest

from delegraph.schema.options import ConcatenationOptions
from delegraph.testing import constant, fed, tensor
from support.agreement import assert_agrees, assert_both_refuse

A = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_inputs_are_joined_along_the_axis(axis):
    b = A.take([1, 0, 0, 1, 1], axis) + 100
    options = ConcatenationOptions(axis=axis)
    (y,) = assert_agrees("CONCATENATION", [fed(A), fed(b)], ["FLOAT32"], options)
    np.testing.assert_array_equal(y, np.concatenate([A, b], axis))


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u4", "?", "f2"])
def test_every_type_is_joined(dtype):
    x = fed(np.ones((2, 2), dtype))
    z = fed(np.zeros((2, 3), dtype))
    assert_agrees(
        "CONCATENATION", [x, z], [x.definition.type.name], ConcatenationOptions(axis=1), version=4
    )


@pytest.mark.parametrize("seed", range(40))
def test_uint8_inputs_of_other_scales_are_requantised(seed):
    rng = np.random.default_rng(seed)
    (s0, s1, s2), (z0, z1, z2) = rng.uniform(0.01, 2, 3), rng.integers(0, 256, 3).tolist()
    x = np.arange(256, dtype=np.uint8)
    inputs = [fed(x, scale=s0, zero_point=z0), fed(x, scale=s1, zero_point=z1)]
    output = tensor((512,), "UINT8", scale=s2, zero_point=z2)
    assert_agrees("CONCATENATION", inputs, [output], ConcatenationOptions(axis=0))


@pytest.mark.parametrize("axis", [0, 1])
def test_int4_inputs_are_joined_by_elements(axis):
    a, b = np.arange(-4, 5).reshape(3, 3), np.arange(9).reshape(3, 3) % 7
    inputs = [constant(a, "INT4"), constant(b, "INT4")]
    options = ConcatenationOptions(axis=axis)
    (y,) = assert_agrees("CONCATENATION", inputs, ["INT4"], options, version=5)
    np.testing.assert_array_equal(y, np.concatenate([a, b], axis))


def test_int8_inputs_need_the_scale_of_the_output():
    x = np.ones(3, np.int8)
    output = tensor((6,), "INT8", scale=0.5)
    assert_both_refuse(
        "CONCATENATION",
        [fed(x, scale=0.5), fed(x, scale=0.25)],
        [output],
        ConcatenationOptions(axis=0),
        match="int8 input 1 has scale 0.25",
    )


def test_constant_scalars_become_a_vector():
    inputs = [constant(np.array(3, np.int32)), constant(np.array(4, np.int32))]
    (y,) = assert_agrees("CONCATENATION", inputs, ["INT32"], ConcatenationOptions(axis=0))
    assert y.tolist() == [3, 4]


@pytest.mark.parametrize("axis", [3, -4])
def test_an_axis_outside_is_refused(axis):
    options = ConcatenationOptions(axis=axis)
    assert_both_refuse("CONCATENATION", [fed(A), fed(A)], ["FLOAT32"], options, match="outside")


def test_other_dimensions_must_be_equal():
    options = ConcatenationOptions(axis=0)
    inputs = [fed(A), fed(A[:, :2])]
    assert_both_refuse("CONCATENATION", inputs, ["FLOAT32"], options, match="only dimension 0")
