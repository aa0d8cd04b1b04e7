"""SELECT and SELECT_V2."""

import numpy as np
import pytest

from delegraph.testing.operator_case import fed
from support.agreement import assert_agrees, assert_both_refuse

A = np.arange(12).reshape(3, 4)
B = A + 50
CONDITION = A % 3 == 0
TYPES = ["float32", "int64", "int32", "int16", "int8", "uint8", "bool"]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", ["SELECT", "SELECT_V2"])
def test_elements_are_chosen(op, dtype):
    a, b = A.astype(dtype), B.astype(dtype)
    (y,) = assert_agrees(op, [fed(CONDITION), fed(a), fed(b)], [dtype.upper()])
    np.testing.assert_array_equal(y, np.where(CONDITION, a, b))


@pytest.mark.parametrize("condition", [np.array([True, False, True]), np.array(True)], ids=str)
def test_select_takes_a_condition_of_rows_or_one_for_all(condition):
    assert_agrees("SELECT", [fed(condition), fed(A), fed(B)], ["INT64"])


def test_select_v2_broadcasts():
    a, b = np.float32([1, 2, 3, 4]), np.float32([[[5]], [[6]]])
    inputs = [fed(CONDITION[:, :1].copy()), fed(a), fed(b)]
    (y,) = assert_agrees("SELECT_V2", inputs, ["FLOAT32"])
    assert y.shape == (2, 3, 4)


def test_one_element_each_keeps_the_declared_shape():
    inputs = [fed(np.array([True])), fed(np.float32(3)), fed(np.float32([[4]]))]
    (y,) = assert_agrees("SELECT", inputs, ["FLOAT32"])
    assert y.shape == ()


def test_select_refuses_other_conditions():
    inputs = [fed(np.ones(4, bool)), fed(A), fed(B)]
    assert_both_refuse("SELECT", inputs, ["INT64"], match=r"condition has shape \(4,\)")


def test_select_refuses_values_of_two_shapes():
    inputs = [fed(np.array(True)), fed(A), fed(B[:2])]
    assert_both_refuse("SELECT", inputs, ["INT64"], match="expected the same")


def test_a_condition_of_numbers_is_refused():
    inputs = [fed(np.int32([1])), fed(np.int32([1])), fed(np.int32([1]))]
    assert_both_refuse("SELECT_V2", inputs, ["INT32"], match="expected one of BOOL")
