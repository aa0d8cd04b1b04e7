"""LOGICAL_AND, LOGICAL_OR and LOGICAL_NOT."""

import numpy as np
import pytest

from delegraph.testing.operator_case import fed
from support.agreement import assert_agrees, assert_both_refuse

A = np.array([[True], [False]])
B = np.array([True, False, True])


@pytest.mark.parametrize(
    ("op", "expected"), [("LOGICAL_AND", A & B), ("LOGICAL_OR", A | B)], ids=["and", "or"]
)
def test_bools_are_combined_and_broadcast(op, expected):
    (y,) = assert_agrees(op, [fed(A), fed(B)], ["BOOL"])
    np.testing.assert_array_equal(y, expected)


def test_not_inverts():
    (y,) = assert_agrees("LOGICAL_NOT", [fed(B)], ["BOOL"])
    assert y.tolist() == [False, True, False]


def test_numbers_are_refused():
    x = np.int32([1, 0])
    assert_both_refuse("LOGICAL_NOT", [fed(x)], ["INT32"], match="expected one of BOOL")
    assert_both_refuse("LOGICAL_AND", [fed(x), fed(x)], ["BOOL"], match="expected one of BOOL")
