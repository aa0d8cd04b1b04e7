"""POW, SQUARED_DIFFERENCE and ATAN2."""

import numpy as np
import pytest
from agreement import assert_agrees, assert_both_refuse, fed
from one_op import tensor
from quantized_pairs import every_pair, random_floats


def test_pow_of_floats_broadcasts():
    a, b = np.abs(random_floats(1, (3, 1, 4))), random_floats(2, (4,))
    assert_agrees("POW", [fed(a), fed(b)], ["FLOAT32"], tolerance=1e-5)


def test_pow_of_integers():
    a, b = np.int32([-3, 0, 2, 7]), np.int32([3, 0, 10, 2])
    (y,) = assert_agrees("POW", [fed(a), fed(b)], ["INT32"])
    assert y.tolist() == [-27, 1, 1024, 49]


def test_pow_refuses_negative_integer_exponents():
    inputs = [fed(np.int32([2])), fed(np.int32([-1]))]
    assert_both_refuse("POW", inputs, ["INT32"], match="negative values")


def test_atan2_knows_the_quadrant():
    a, b = np.float32([1, 1, -1, -1, 0]), np.float32([1, -1, 1, -1, -1])
    assert_agrees("ATAN2", [fed(a), fed(b)], ["FLOAT32"], tolerance=1e-6)


def test_atan2_of_two_ranks_is_refused():
    inputs = [fed(np.ones((2, 3), np.float32)), fed(np.ones(3, np.float32))]
    assert_both_refuse("ATAN2", inputs, ["FLOAT32"], match=r"shape \[3\], expected \[2, 3\]")


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_squared_difference_broadcasts(dtype):
    a, b = random_floats(3, (3, 1, 5)).astype(dtype), random_floats(4, (4, 5)).astype(dtype)
    (y,) = assert_agrees("SQUARED_DIFFERENCE", [fed(a), fed(b)], [dtype.upper()])
    np.testing.assert_array_equal(y, (a - b) ** 2)


@pytest.mark.parametrize("scales", [(0.1, 0.2, 0.3), (0.05, 0.017, 0.09), (0.01, 0.5, 0.3)])
def test_every_int8_pair_of_squared_difference_is_exact(scales):
    a, b = every_pair("INT8")
    inputs = [fed(a, scale=scales[0], zero_point=9), fed(b, scale=scales[1], zero_point=-20)]
    output = [tensor(a.shape, "INT8", scale=scales[2], zero_point=-100)]
    assert_agrees("SQUARED_DIFFERENCE", inputs, output, version=2)


@pytest.mark.parametrize("op", ["POW", "SQUARED_DIFFERENCE"])
def test_other_types_are_refused(op):
    x = np.int64([1])
    assert_both_refuse(op, [fed(x), fed(x)], ["INT64"], match="has type INT64")
