"""FLOOR_DIV and FLOOR_MOD."""

import numpy as np
import pytest

from delegraph.testing.operator_case import fed
from support.agreement import assert_agrees, assert_both_refuse

A = np.array([[7], [-7], [9]])
B = np.array([2, -2, 3, 5])
INTEGERS = ["int8", "int16", "int32"]


@pytest.mark.parametrize("dtype", ["float32", *INTEGERS])
def test_quotients_are_rounded_down(dtype):
    a, b = A.astype(dtype), B.astype(dtype)
    (y,) = assert_agrees("FLOOR_DIV", [fed(a), fed(b)], [dtype.upper()])
    np.testing.assert_array_equal(y, A // B)


@pytest.mark.parametrize("dtype", ["float32", *INTEGERS, "int64"])
def test_remainders_have_the_divisors_sign(dtype):
    a, b = A.astype(dtype), B.astype(dtype)
    (y,) = assert_agrees("FLOOR_MOD", [fed(a), fed(b)], [dtype.upper()])
    np.testing.assert_array_equal(y, A % B)


@pytest.mark.parametrize("op", ["FLOOR_DIV", "FLOOR_MOD"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division_by_zero_is_refused(op, dtype):
    inputs = [fed(np.ones(2, dtype)), fed(np.array([1, 0], dtype))]
    assert_both_refuse(op, inputs, [dtype.upper()], match="division by zero")


def test_float_division_by_zero_is_refused_only_when_dividing():
    inputs = [fed(np.ones(2, np.float32)), fed(np.float32([1, 0]))]
    assert_both_refuse("FLOOR_DIV", inputs, ["FLOAT32"], match="division by zero")
    assert_agrees("FLOOR_MOD", inputs, ["FLOAT32"])


def test_other_types_are_refused():
    x = np.uint8([1])
    assert_both_refuse("FLOOR_DIV", [fed(x), fed(x)], ["UINT8"], match="has type UINT8")


@pytest.mark.parametrize("op", ["FLOOR_DIV", "FLOOR_MOD"])
def test_float_scalars(op):
    a, b = np.float32(-7), np.float32(2)
    assert_agrees(op, [fed(a), fed(b)], ["FLOAT32"])


def test_a_remainder_of_zero_has_the_dividends_sign():
    a, b = np.float32([[0.0], [-0.0], [-6.0], [6.0]]), np.float32([3.0, -3.0, np.inf, -np.inf])
    (y,) = assert_agrees("FLOOR_MOD", [fed(a), fed(b)], ["FLOAT32"])
    np.testing.assert_array_equal(np.signbit(y[y == 0]), np.signbit(np.fmod(a, b)[y == 0]))
