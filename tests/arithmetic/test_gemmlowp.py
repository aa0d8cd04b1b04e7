"""Fixed-point functions, against definitions in exact integers and the real functions."""

import numpy as np
import pytest

from delegraph.arithmetic import gemmlowp

EVERY_INT16 = np.arange(-(2**15), 2**15).astype(np.int16)
SOME_INT32 = np.linspace(-(2**31), 2**31 - 1, 40001).astype(np.int64).astype(np.int32)


def truncated(a: int, b: int) -> int:
    return abs(a) // b if a >= 0 else -(abs(a) // b)


def high_mul(a: int, b: int, bits: int) -> int:
    product = a * b
    nudge = 2 ** (bits - 1) if product >= 0 else 1 - 2 ** (bits - 1)
    return min(truncated(product + nudge, 2**bits), 2**bits - 1)


@pytest.mark.parametrize(("dtype", "bits"), [(np.int16, 15), (np.int32, 31)])
def test_high_mul_rounds_and_saturates_like_the_definition(dtype, bits):
    rng = np.random.default_rng(0)
    edges = [-(2**bits), 1 - 2**bits, -1, 0, 1, 2 ** (bits - 1), -(2 ** (bits - 1)), 2**bits - 1]
    a, b = np.meshgrid([*edges, *rng.integers(-(2**bits), 2**bits, 50)], edges)
    got = gemmlowp.high_mul(a.astype(dtype), b.astype(dtype))
    assert got.dtype == dtype
    expected = [high_mul(int(x), int(y), bits) for x, y in zip(a.flat, b.flat, strict=True)]
    assert got.ravel().tolist() == expected


def test_saturating_shift_left_stops_at_the_ends():
    x = np.array([-(2**15), -5000, -3, 0, 3, 5000, 2**15 - 1], np.int16)
    expected = np.clip(x.astype(int) * 8, -(2**15), 2**15 - 1)
    np.testing.assert_array_equal(gemmlowp.saturating_shift_left(x, 3), expected)


@pytest.mark.parametrize("integer_bits", range(7))
def test_int16_functions_are_near_the_real_ones(integer_bits):
    x = EVERY_INT16 / 2.0 ** (15 - integer_bits)
    tanh, logistic = (f(EVERY_INT16, integer_bits) for f in (gemmlowp.tanh, gemmlowp.logistic))
    np.testing.assert_allclose(tanh / 2.0**15, np.tanh(x), atol=7e-4)
    np.testing.assert_allclose(logistic / 2.0**15, 1 / (1 + np.exp(-x)), atol=4e-4)


@pytest.mark.parametrize("integer_bits", [0, 4, 5, 8])
def test_int32_functions_are_near_the_real_ones(integer_bits):
    x = SOME_INT32 / 2.0 ** (31 - integer_bits)
    tanh, logistic = (f(SOME_INT32, integer_bits) for f in (gemmlowp.tanh, gemmlowp.logistic))
    np.testing.assert_allclose(tanh / 2.0**31, np.tanh(x), atol=3e-7)
    np.testing.assert_allclose(logistic / 2.0**31, 1 / (1 + np.exp(-x)), atol=3e-7)


@pytest.mark.parametrize("integer_bits", [0, 5, 12])
def test_exp_is_near_the_real_one(integer_bits):
    x = SOME_INT32[SOME_INT32 <= 0]
    real = np.exp(x / 2.0 ** (31 - integer_bits))
    got = gemmlowp.exp_on_negative_values(x, integer_bits)
    np.testing.assert_allclose(got / 2.0**31, real, atol=3e-7)


def test_functions_of_zero_are_exact():
    zero = np.zeros(1, np.int32)
    assert gemmlowp.tanh(zero, 4) == 0
    assert gemmlowp.logistic(zero, 4) == 2**30
    assert gemmlowp.exp_on_negative_values(zero, 4) == 2**31 - 1


def test_tables_are_indexed_by_the_bits_of_an_int16():
    x = np.array([-32768, -1, 0, 1, 32767], np.int16)
    at = x.view(np.uint16)
    np.testing.assert_array_equal(gemmlowp.tanh_table(3)[at], gemmlowp.tanh(x, 3))
    np.testing.assert_array_equal(gemmlowp.logistic_table(3)[at], gemmlowp.logistic(x, 3))


def test_tables_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        gemmlowp.tanh_table(3)[0] = 1


def inverse_sqrt(x: int) -> tuple[int, int]:
    def product(a, b):
        return high_mul(a, b, 31)

    def shifted(a, n):
        return max(-(2**31), min(2**31 - 1, a << n))

    if x <= 1:
        return 2**31 - 1, 0
    right = 11
    while x >= 2**29:
        x, right = x // 4, right + 1
    while x < 2**27:
        x, right = x * 4, right - 1
    half = (x // 2 + 1) // 2
    y = 2**28
    for _ in range(5):
        cube = shifted(product(product(y, y), y), 6)
        y = shifted(product(3 * 2**27, y) - product(half, cube), 3)
    y = product(y, round(2**30.5))
    return (y << -right, 0) if right < 0 else (y, -right)


NUMBERS = np.unique([*range(70), *np.geomspace(2, 2**31 - 1, 3000).astype(np.int64)])


def test_inverse_square_roots_follow_the_definition():
    multiplier, shift = gemmlowp.inverse_sqrt(NUMBERS)
    assert multiplier.dtype == np.int32
    expected = [inverse_sqrt(int(x)) for x in NUMBERS]
    assert list(zip(multiplier.tolist(), shift.tolist(), strict=True)) == expected


def test_inverse_square_roots_are_near_the_real_ones():
    multiplier, shift = gemmlowp.inverse_sqrt(NUMBERS[2:])
    # Five Newton steps from 1 leave this much where the start is worst.
    np.testing.assert_allclose(multiplier * 2.0 ** (shift - 31.0), NUMBERS[2:] ** -0.5, rtol=2e-6)
