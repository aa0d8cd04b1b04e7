"""Element-wise StableHLO operators: the official interpreter's, and the specification's."""

import operator

import ml_dtypes
import numpy as np
import pytest

from delegraph.schema.enums import StablehloComparisonDirection as Direction
from delegraph.schema.enums import StablehloComparisonType as Comparison
from delegraph.schema.options import StablehloCompareOptions
from delegraph.testing import fed, tensor
from support.agreement import assert_agrees, assert_both_refuse
from support.stablehlo import assert_refused, assert_result

OFFICIAL = ["ADD", "MULTIPLY", "MAXIMUM", "MINIMUM"]
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = ["float16", "float32", "float64"]
TOTAL = Comparison.STABLEHLO_COMPARISON_TYPE_FLOAT_TOTAL_ORDER
RELATIONS = ["eq", "ne", "ge", "gt", "le", "lt"]


def two_operands(dtype, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return np.array([0, 0, 1, 1], dtype), np.array([0, 1, 0, 1], dtype)
    if dtype in FLOATS:
        a, b = rng.normal(size=(2, 3, 40)).astype(dtype)
        a[0, :4], b[0, 2:6] = [np.nan, np.inf, np.nan, -np.inf], [1, np.nan, np.nan, -0.0]
        return a, b
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, (2, 3, 40), dtype, endpoint=True)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, "bool"])
@pytest.mark.parametrize("op", OFFICIAL)
def test_results_are_the_official_ones(op, dtype):
    a, b = two_operands(dtype)
    x, y = fed(a), fed(b)
    assert_agrees(f"STABLEHLO_{op}", [x, y], [x.definition.type.name])


@pytest.mark.parametrize("dtype", [*INTEGERS, "bool"])
def test_and_is_the_official_one(dtype):
    x, y = map(fed, two_operands(dtype))
    assert_agrees("STABLEHLO_AND", [x, y], [x.definition.type.name])


@pytest.mark.parametrize("op", [*OFFICIAL, "AND"])
def test_shapes_that_differ_are_refused(op):
    inputs = [fed(np.zeros((2, 3), np.int32)), fed(np.zeros((1, 3), np.int32))]
    message = r"shape \[1, 3\], expected \[2, 3\]"
    assert_both_refuse(f"STABLEHLO_{op}", inputs, ["INT32"], match=message)


def test_bits_of_floats_are_refused():
    x, y = fed(np.zeros(3, np.float32)), fed(np.ones(3, np.float32))
    assert_both_refuse("STABLEHLO_AND", [x, y], ["FLOAT32"], match="type FLOAT32")


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_differences_wrap(dtype):
    a, b = two_operands(dtype)
    with np.errstate(all="ignore"):
        expected = np.subtract(a, b)
    assert_result("SUBTRACT", [a, b], expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_quotients_and_remainders_are_cut_towards_zero(dtype):
    a, b = two_operands(dtype)
    b[b == 0] = 3
    a.flat[0], b.flat[0] = np.iinfo(dtype).min, 7
    pairs = [(int(x), int(y)) for x, y in zip(a.flat, b.flat, strict=True)]
    cut = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in pairs]
    rest = [x - q * y for (x, y), q in zip(pairs, cut, strict=True)]
    wrapped = [q if q <= np.iinfo(dtype).max else np.iinfo(dtype).min for q in cut]
    assert_result("DIVIDE", [a, b], np.array(wrapped, dtype).reshape(a.shape))
    assert_result("REMAINDER", [a, b], np.array(rest, dtype).reshape(a.shape))


def test_specified_quotients():
    a, b = np.array([17.1, -17.1, 17.1, -17.1]), np.array([3.0, 3.0, -3.0, -3.0])
    expected = np.array([5.7, -5.7, -5.7, 5.7])
    assert_result("DIVIDE", [a, b], expected, tolerance=1e-6)
    rest = np.array([2.1, -2.1, 2.1, -2.1])
    assert_result("REMAINDER", [a, b], rest, tolerance=1e-6)


def test_specified_powers():
    a, b = np.array([-2.0, -0.0, -36.0, 5.0, 3.0, 10000.0]), np.array([2.0, 2, 1.1, 2, -1, 10])
    expected = np.array([4.0, 0, np.nan, 25, 0.333333343, 1e40])
    assert_result("POWER", [a, b], expected, tolerance=1e-7)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_integer_powers_wrap_and_inverses_are_cut(dtype):
    a = np.array([2, -3, 3, 1, -1, -1, 2, 0, 7], dtype)
    b = np.array([3, 3, 0, -5, -5, -4, -1, 2, 50], dtype)
    expected = np.array([8, -27, 1, 1, -1, 1, 0, 0, 0], dtype)
    bits = 8 * np.dtype(dtype).itemsize
    wrapped = pow(7, 50) % (1 << bits)
    expected[-1] = wrapped - (wrapped >> (bits - 1) << bits)
    assert_result("POWER", [a, b], expected)


def test_or_is_for_bits_and_truths():
    assert_result("OR", [np.uint8([1, 4]), np.uint8([2, 5])], np.uint8([3, 5]))
    assert_result("OR", [np.array([True, False])] * 2, np.array([True, False]))


UNARY = {
    "ABS": np.abs,
    "CBRT": np.cbrt,
    "COSINE": np.cos,
    "EXPONENTIAL": np.exp,
    "FLOOR": np.floor,
    "LOG": np.log,
    "LOGISTIC": lambda x: 1 / (1 + np.exp(-x)),
    "NEGATE": np.negative,
    "RSQRT": lambda x: 1 / np.sqrt(x),
    "TANH": np.tanh,
}
ACCURACY = {"float64": 1e-14, "float32": 1e-6, "float16": 2e-3, ml_dtypes.bfloat16: 2e-2}


@pytest.mark.parametrize("dtype", ACCURACY)
@pytest.mark.parametrize("op", UNARY)
def test_functions_of_floats(op, dtype):
    x = np.random.default_rng(0).uniform(0.1, 2, (3, 5)).astype(dtype)
    expected = UNARY[op](x.astype(np.float64)).astype(dtype)
    assert_result(op, [x], expected, tolerance=ACCURACY[dtype])


@pytest.mark.parametrize("op", sorted(set(UNARY) - {"ABS", "CBRT", "FLOOR"}))
def test_functions_of_complex_numbers(op):
    x = np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32).view(np.complex64)
    expected = UNARY[op](x.astype(np.complex128)).astype(np.complex64)
    assert_result(op, [x], expected, tolerance=1e-5)


def test_magnitudes_of_complex_numbers_are_real():
    assert_result("ABS", [np.complex64([3 + 4j, -1])], np.float32([5, 1]))


def test_integers_are_negated_as_they_wrap():
    assert_result("NEGATE", [np.int8([1, -128, 0])], np.int8([-1, -128, 0]))
    assert_result("ABS", [np.int16([-3, 4])], np.int16([3, 4]))


def test_logistic_of_large_numbers_is_finite():
    x = np.float32([-1000, 1000, -np.inf, np.inf])
    assert_result("LOGISTIC", [x], np.float32([0, 1, 0, 1]))


def test_roots_of_integers_are_refused():
    assert_refused("RSQRT", [np.int32([1])], tensor((1,), "INT32"), match="type INT32")


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
