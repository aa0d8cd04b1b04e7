"""MAXIMUM and MINIMUM."""

import numpy as np
import pytest

from delegraph.testing.operator_case import fed
from support.agreement import assert_agrees, assert_both_refuse
from support.quantized_pairs import random_floats

TYPES = ["float32", "float16", "int64", "int32", "int16", "int8", "uint8"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("op", "function"), [("MAXIMUM", np.maximum), ("MINIMUM", np.minimum)])
def test_operands_broadcast(op, function, dtype):
    a = np.abs(random_floats(1, (3, 1, 5))).astype(dtype)
    b = np.abs(random_floats(2, (4, 5))).astype(dtype)
    (y,) = assert_agrees(op, [fed(a), fed(b)], [dtype.upper()])
    np.testing.assert_array_equal(y, function(a, b))


def test_bools_are_refused():
    x = np.array([True])
    assert_both_refuse("MAXIMUM", [fed(x), fed(x)], ["BOOL"], match="has type BOOL")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("op", ["MAXIMUM", "MINIMUM"])
def test_nan_gives_the_second_operand(op, dtype):
    a = np.array([np.nan, 1, np.nan, 2], dtype)
    b = np.array([3, np.nan, np.nan, -np.inf], dtype)
    (y,) = assert_agrees(op, [fed(a), fed(b)], [dtype.upper()])
    np.testing.assert_array_equal(y[:3], b[:3])


def test_tensors_without_elements_may_have_any_type():
    inputs = [fed(np.zeros((2, 0), bool)), fed(np.zeros((1, 0), bool))]
    (y,) = assert_agrees("MAXIMUM", inputs, ["BOOL"])
    assert y.shape == (2, 0)
