"""Element-wise StableHLO operators: the official interpreter's, and the specification's."""

import ml_dtypes
import numpy as np
import pytest
from agreement import assert_agrees, assert_both_refuse, fed
from one_op import tensor
from stablehlo import assert_refused, assert_result

OFFICIAL = ["ADD", "MULTIPLY", "MAXIMUM", "MINIMUM"]
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = ["float16", "float32", "float64"]


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
