"""LOGICAL_AND, LOGICAL_OR and LOGICAL_NOT; BITWISE_XOR and RIGHT_SHIFT."""

import numpy as np
import pytest

from delegraph.testing.operator_case import fed
from support.agreement import assert_agrees, assert_both_refuse
from support.quantized_pairs import random_integers

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


TYPES = ["INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32"]


@pytest.mark.parametrize("type", TYPES)
def test_xor_broadcasts(type):
    a, b = random_integers(1, type, (3, 1, 4)), random_integers(2, type, (2, 4))
    (y,) = assert_agrees("BITWISE_XOR", [fed(a), fed(b)], [type])
    np.testing.assert_array_equal(y, a ^ b)


@pytest.mark.parametrize("type", TYPES)
def test_shifts_beyond_the_width_act_like_the_widest(type):
    a = random_integers(3, type, (3, 1, 4))
    b = np.array([0, 1, 5, 100], type.lower())
    assert_agrees("RIGHT_SHIFT", [fed(a), fed(b)], [type])


def test_floats_are_refused():
    x = np.float32([1])
    assert_both_refuse("BITWISE_XOR", [fed(x), fed(x)], ["FLOAT32"], match="has type FLOAT32")
