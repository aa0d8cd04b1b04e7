"""STABLEHLO_COMPARE, SELECT, CLAMP and CONVERT, against the specification."""

import operator

import ml_dtypes
import numpy as np
import pytest
from one_op import tensor
from stablehlo import assert_refused, assert_result

from delegraph.schema.enums import StablehloComparisonDirection as Direction
from delegraph.schema.enums import StablehloComparisonType as Comparison
from delegraph.schema.options import StablehloCompareOptions

TOTAL = Comparison.STABLEHLO_COMPARISON_TYPE_FLOAT_TOTAL_ORDER
RELATIONS = ["eq", "ne", "ge", "gt", "le", "lt"]


def relation(name, kind=Comparison.STABLEHLO_COMPARISON_TYPE_NOTYPE):
    direction = Direction[f"STABLEHLO_COMPARISON_DIRECTION_{name.upper()}"]
    return StablehloCompareOptions(comparison_direction=direction, compare_type=kind)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint64", "bool"])
@pytest.mark.parametrize("name", RELATIONS)
def test_relations_hold_as_in_python(name, dtype):
    a, b = np.array([0, 0, 1, 1], dtype), np.array([0, 1, 0, 1], dtype)
    assert_result("COMPARE", [a, b], getattr(operator, name)(a, b), relation(name))


def test_nothing_holds_of_what_is_no_number():
    nan = np.float32([np.nan])
    for name in RELATIONS:
        assert_result("COMPARE", [nan, nan], np.array([name == "ne"]), relation(name))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", RELATIONS)
def test_the_total_order_has_a_place_for_every_float(name, dtype):
    ascending = np.array([-np.nan, -np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan]).astype(dtype)
    ascending[0] = np.copysign(ascending[0], dtype(-1))
    ascending[-1] = np.copysign(ascending[-1], dtype(1))
    i, j = np.divmod(np.arange(64), 8)
    expected = getattr(operator, name)(i, j)
    assert_result("COMPARE", [ascending[i], ascending[j]], expected, relation(name, TOTAL))


def test_complex_numbers_are_equal_or_not():
    a, b = np.complex64([1 + 2j, 1 + 2j]), np.complex64([1 + 2j, 1 + 3j])
    assert_result("COMPARE", [a, b], np.array([True, False]), relation("eq"))
    output = tensor((2,), "BOOL")
    assert_refused("COMPARE", [a, b], output, relation("lt"), match="expected EQ or NE")


@pytest.mark.parametrize("condition", [[True, False, True], True, False])
def test_select_takes_the_first_where_the_condition_holds(condition):
    a, b = np.int16([1, 2, 3]), np.int16([4, 5, 6])
    condition = np.array(condition)
    assert_result("SELECT", [condition, a, b], np.where(condition, a, b))


def test_select_refuses_a_condition_of_another_shape():
    inputs = [np.array([True]), np.int16([1, 2]), np.int16([3, 4])]
    assert_refused("SELECT", inputs, tensor((2,), "INT16"), match=r"shape \[1\], expected \[2\]")


def test_clamp_keeps_elements_between_bounds():
    # the specification's example
    low, x, high = np.int32([5, 10, 15]), np.int32([3, 13, 23]), np.int32([10, 15, 20])
    assert_result("CLAMP", [low, x, high], np.int32([5, 13, 20]))
    assert_result("CLAMP", [np.int32(5), x, np.int32(15)], np.int32([5, 13, 15]))


CONVERSIONS = [
    (np.float32([1.7, -1.7, 300, -300, np.inf, np.nan]), np.int8([1, -1, 127, -128, 127, 127])),
    (np.float64([-1, 255.9, 1e10, 1e20]), np.uint64([0, 255, 10**10, 2**64 - 1])),
    (np.int32([-1, 256, 257]), np.uint8([255, 0, 1])),
    (np.float64([0, -0.5, np.nan]), np.array([False, True, True])),
    (np.array([True, False]), np.float16([1, 0])),
    (np.complex64([1.5 + 9j, -2]), np.float32([1.5, -2])),
    (np.complex64([1.5 + 9j, -2]), np.int32([1, -2])),
    (np.complex64([0 + 1j, 0]), np.array([True, False])),
    (np.int64([3, -4]), np.complex64([3, -4])),
    (np.float32([1.5, 300]), np.array([1.5, 300]).astype(ml_dtypes.bfloat16)),
    (np.array([1.5, -300, 1000]).astype(ml_dtypes.bfloat16), np.int8([1, -128, 127])),
    (np.array([1.5, -300, 448]).astype(ml_dtypes.float8_e4m3fn), np.int8([1, -128, 127])),
]


@pytest.mark.parametrize(("x", "expected"), CONVERSIONS)
def test_conversions(x, expected):
    assert_result("CONVERT", [x], expected)
