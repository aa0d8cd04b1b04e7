"""Fixed-point multiplication against definitions in Python integers."""

from fractions import Fraction

import numpy as np
import pytest

from delegraph import Tensor, TensorType
from delegraph.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    multiply_by_quantized_multiplier_gemm,
    multiply_by_quantized_multiplier_int64,
    power_of_two,
    quantize_multiplier,
    quantize_multipliers,
    rounding_divide_by_pot,
    saturating_rounding_doubling_high_mul,
    scale_exponent,
    unlimited_multiplier,
)
from delegraph.errors import OperatorError
from delegraph.graph.model import Quantization

RNG = np.random.default_rng(0)
EDGES = [0, 1, -1, 2, -2, 3, -3, 127, -128, 2**23, -(2**23), 2**31 - 1, -(2**31), 2**30, -(2**30)]
X = np.concatenate([EDGES, RNG.integers(-(2**24), 2**24, 3000)])


def half_up(value):
    return (value + Fraction(1, 2)).__floor__()


def half_away(value):
    return half_up(value) if value >= 0 else -half_up(-value)


def high_mul(a, b):
    if a == b == -(2**31):
        return 2**31 - 1
    return half_up(Fraction(a * b, 2**31))


@pytest.mark.parametrize("real", [1e-12, 2.0**-32, 0.001, 0.25, 0.5, 0.999999999999, 1.0, 3.7, 1e6])
def test_mantissa_and_shift_stand_for_the_multiplier(real):
    mantissa, shift = quantize_multiplier(real)
    if real < 2**-32:
        assert (mantissa, shift) == (0, 0)
    else:
        assert 2**30 <= mantissa < 2**31
        assert mantissa * 2.0 ** (shift - 31) == pytest.approx(real, rel=2**-31)


def test_several_multipliers_are_quantised_alike():
    reals = [0.0, 2.0**-33, 2.0**-32, 2.0**-31, 1.0 - 2.0**-33, 0.5, np.inf, 1.0, 3.7e8]
    reals += np.exp(RNG.uniform(-20, 8, 500)).tolist()
    pairs = zip(*(array.tolist() for array in quantize_multipliers(reals)), strict=True)
    assert list(pairs) == [quantize_multiplier(real) for real in reals]


def test_zero_has_no_mantissa():
    assert quantize_multiplier(0.0) == (0, 0)
    assert [array.tolist() for array in quantize_multipliers([0.0, 0.5])] == [[0, 2**30], [0, 0]]


@pytest.mark.parametrize("factor", [2**30, 2**31 - 1, 1518500250, -(2**31), 1])
def test_high_mul_is_half_up_and_saturates(factor):
    expected = [high_mul(int(x), factor) for x in X]
    assert saturating_rounding_doubling_high_mul(X, factor).tolist() == expected


@pytest.mark.parametrize("exponent", [0, 1, 2, 7, 12, 31])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_division_takes_halves_away_from_zero(exponent, dtype):
    x = np.concatenate([X, np.arange(-64, 65) << min(exponent, 20)]).astype(dtype)
    expected = [half_away(Fraction(int(value), 2**exponent)) for value in x]
    divided = rounding_divide_by_pot(x, exponent)
    assert divided.dtype == dtype
    assert divided.tolist() == expected


@pytest.mark.parametrize("real", [1e-9, 0.0003, 0.011, 0.37, 0.9999, 1.0, 5.3])
@pytest.mark.parametrize(
    ("function", "second"),
    [
        (multiply_by_quantized_multiplier, half_away),
        (multiply_by_quantized_multiplier_gemm, half_up),
    ],
)
def test_products_are_rounded_twice(function, second, real):
    mantissa, shift = quantize_multiplier(real)
    x = X[np.abs(X) < 2**24]
    expected = [
        second(Fraction(high_mul(int(v) << max(shift, 0), mantissa), 2 ** max(-shift, 0)))
        for v in x
    ]
    product = function(x, mantissa, shift)
    assert product.dtype == np.int32
    assert product.tolist() == expected


@pytest.mark.parametrize("real", [1e-6, 0.0003, 0.37, 0.9999999, 5.3])
def test_int64_products_are_rounded_once_after_the_mantissa_is_cut(real):
    mantissa, shift = quantize_multiplier(real)
    short = min((mantissa + 2**15) >> 16, 0x7FFF)
    x = RNG.integers(-(2**28), 2**28, 2000)
    expected = [half_up(Fraction(int(v) * short, 2 ** (15 - shift))) for v in x]
    assert multiply_by_quantized_multiplier_int64(x, mantissa, shift).tolist() == expected


def test_each_channel_has_its_own_multiplier():
    mantissas, shifts = quantize_multipliers([0.3, 0.004, 2.5])
    x = RNG.integers(-(2**20), 2**20, (100, 3))
    product = multiply_by_quantized_multiplier(x, mantissas, shifts)
    for c in range(3):
        alone = multiply_by_quantized_multiplier(x[:, c], int(mantissas[c]), int(shifts[c]))
        np.testing.assert_array_equal(product[:, c], alone)


@pytest.mark.parametrize("scale", [0.0, -0.5, float("inf"), float("nan"), 0.3])
def test_a_scale_that_is_no_power_of_two_has_no_exponent(scale):
    assert power_of_two(scale) is None


def test_the_exponent_of_a_tensors_scale_is_found_or_the_tensor_named():
    def tensor(scale):
        quantization = Quantization(np.float32([scale]), np.zeros(1, np.int32))
        return Tensor(0, TensorType.INT16, (), name="state", quantization=quantization)

    assert [scale_exponent(tensor(2.0**e)) for e in (-15, -3, 0, 2)] == [-15, -3, 0, 2]
    with pytest.raises(OperatorError, match=r"'state' has scale 0\.3.*, expected a power of two"):
        scale_exponent(tensor(0.3))


@pytest.mark.parametrize("real", [2.0**31, 1e300])
def test_multipliers_that_no_shift_stands_for_are_refused(real):
    with pytest.raises(OperatorError, match=r"scales give the multiplier .*, expected less than"):
        quantize_multiplier(real)
    with pytest.raises(OperatorError, match=r"scales give the multiplier .*, expected less than"):
        quantize_multipliers([1.0, real])


@pytest.mark.parametrize("shift", [32, 41, 63, 101])
def test_a_left_shift_beyond_31_is_that_of_the_instructions(shift):
    mantissa, found = unlimited_multiplier(1.5 * 2.0 ** (shift - 1))
    assert found == shift
    product = multiply_by_quantized_multiplier(X, mantissa, shift)
    expected = multiply_by_quantized_multiplier(X, mantissa, shift % 32)
    np.testing.assert_array_equal(product, expected)
    assert not multiply_by_quantized_multiplier_gemm(X, mantissa, shift).any()


def test_negative_multipliers_of_channels_are_refused():
    with pytest.raises(OperatorError, match=r"multiplier -0\.5, expected none below 0"):
        quantize_multipliers([1.0, -0.5])
