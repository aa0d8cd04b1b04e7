"""Fixed-point exp, tanh and logistic, equal to gemmlowp's results in every bit.

A Qm.n number is an integer ``raw`` that stands for ``raw / 2**n``: m integer bits, n fractional
bits and a sign, so m + n is 15 for int16 and 31 for int32. The dtype of an array tells which of the
two types is meant, and results have the operand's dtype. Q0 means m = 0: numbers in [-1, 1).

Source:
    gemmlowp, fixedpoint/fixedpoint.h.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from delegraph.arithmetic.fixed_point import rounding_divide_by_pot

if TYPE_CHECKING:
    from numpy.typing import NDArray

Raw: TypeAlias = "NDArray[np.signedinteger[Any]]"
"""Array of integers in a Qm.n format, int16 or int32."""

_EXP_MINUS_EIGHTH = 1895147668  # exp(-1/8), Q0.31
_ONE_THIRD = 715827883  # Q0.31
_EXP_MINUS_POWERS = {  # k: exp(-2**k), Q0.31
    -2: 1672461947,
    -1: 1302514674,
    0: 790015084,
    1: 290630308,
    2: 39332535,
    3: 720401,
    4: 242,
}
_48_OVER_17 = 1515870810  # Q2.29
_32_OVER_17 = 1010580540  # Q2.29
_HALF_SQRT_2 = 1518500250  # Q0.31
_QUARTER_SQRT_2 = 1805811301  # 2**-1/4, Q0.31
_LOG_2 = 1488522236  # Q0.31
_LOG_NUMERATOR = 117049297  # 11/240 * 2**1/4, Q0.31
_LOG_SQUARE = 127690142  # 1/20 * 2**1/4, Q0.31
_LOG_INNER = 1057819769  # 2 / 2**1/4 - 2**1/4, Q0.31
_LOG_LINEAR = 638450708  # 1/4 * 2**1/4, Q0.31


def high_mul(a: Raw, b: Any) -> Raw:
    """Return ``a * b / 2**n`` for Q0.n operands, in a's dtype, rounded with halves up.

    Args:
        a: any shape, int16 or int32.
        b: same dtype, with a shape that broadcasts.

    >>> high_mul(np.array([3 << 13, -32768], np.int16), np.int16(-32768))
    array([-24576,  32767], dtype=int16)

    Source:
        gemmlowp::SaturatingRoundingDoublingHighMul.
    """
    wide, n = _wide(a.dtype)
    product: Raw = np.multiply(a, b, dtype=wide)
    product += 1 << (n - 1)  # gemmlowp truncates after adding a signed nudge, with the same result
    product >>= n
    np.minimum(product, (1 << n) - 1, out=product)
    return np.asarray(product, a.dtype)


def saturating_shift_left(x: Raw, exponent: Any) -> Raw:
    """Return ``x * 2**exponent``, saturated to x's dtype; *exponent* is >= 0 and broadcasts."""
    wide, _ = _wide(x.dtype)
    limits = np.iinfo(x.dtype)
    return np.asarray(np.clip(x.astype(wide) << exponent, limits.min, limits.max), x.dtype)


def exp_on_negative_values(x: Raw, integer_bits: int) -> Raw:
    """Return exp(x) in Q0 for x <= 0.

    Args:
        x: any shape, int16 or int32, none positive.
        integer_bits: number m of integer bits of x.

    Source:
        gemmlowp::exp_on_negative_values.
    """
    n = _wide(x.dtype)[1]
    fraction = n - integer_bits
    quarter = 1 << (fraction - 2)
    # x = -(whole quarters) + r with r in [-1/4, 0): exp(r) by series, the rest bit by bit.
    r = (x & (quarter - 1)) - quarter
    remainder = r - x
    y = _exp_on_quarter(saturating_shift_left(r, integer_bits) if integer_bits else r)
    for power, constant in _EXP_MINUS_POWERS.items():
        if power < integer_bits:
            factor = _constant(constant, x.dtype)
            scaled = high_mul(y, factor)
            y = np.where(remainder & _bit(fraction + power, x.dtype), scaled, y)
    if integer_bits > 5:
        y[x < _constant(-(1 << (36 - integer_bits)), x.dtype)] = 0  # below exp(-32)
    y[x == 0] = _one(x.dtype)
    return y


def inverse_sqrt(x: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the Q31 multipliers and left shifts of ``1 / sqrt(x)``, both in the shape of *x*.

    Args:
        x: integers from 0 to 2**31 - 1; integers below 2 give the largest multiplier, almost 1.

    >>> multiplier, shift = inverse_sqrt(np.array([16, 3]))
    >>> (multiplier * 2.0 ** (shift - 31)).round(6).tolist()
    [0.25, 0.57735]

    Source:
        GetInvSqrtQuantizedMultiplierExp, tflite/kernels/internal/common.h.
    """
    value = np.maximum(x, 2).astype(np.int64)
    bits = np.frexp(value.astype(np.float64))[1]
    # How many pairs of bits value is shifted left, to lie in [2**27, 2**29).
    pairs = (29 - bits) // 2
    value = np.where(pairs < 0, value >> 2, value << (2 * np.maximum(pairs, 0)))
    half = ((value >> 1) + 1) >> 1  # Q3
    inverse = _inverse_sqrt_steps(half).astype(np.int32)
    y: Any = high_mul(inverse, np.int32(_HALF_SQRT_2))
    right = 11 - pairs
    y <<= np.maximum(-right, 0)
    y[np.asarray(x) < 2] = _one(y.dtype)
    return y, np.where(np.asarray(x) < 2, 0, -np.maximum(right, 0))


def _inverse_sqrt_steps(half: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ``1 / sqrt(2 * half)`` after five Newton-Raphson steps from 1; Q3 numbers in int64.

    *half* is from 1/4 to 1. So no result exceeds sqrt(2), and nothing saturates.
    """
    rounding, scaled_half = 1 << 30, half << 6
    y = ((3 << 24) - ((half + 4) >> 3)) << 3  # the first step from 1
    for _ in range(4):
        cube = y * y
        cube += rounding
        cube >>= 31
        cube *= y
        cube += rounding
        cube >>= 31
        cube *= scaled_half
        cube += rounding
        cube >>= 31
        y *= 3
        y += 8
        y >>= 4
        y -= cube
        y <<= 3
    return y


def tanh(x: Raw, integer_bits: int) -> Raw:
    """Return the hyperbolic tangent of *x*, in Q0; *x* has *integer_bits* integer bits.

    Source:
        gemmlowp::tanh.
    """
    negative = np.where(x < 0, x, -x)
    e = exp_on_negative_values(negative, integer_bits + 1)  # the same raw with one more bit: 2x
    y = saturating_shift_left(_reciprocal(e) - _f2_one(x.dtype), 2)
    y = np.where(x < 0, -y, y)
    y[x == 0] = 0
    return y


def logistic(x: Raw, integer_bits: int) -> Raw:
    """Return 1 / (1 + exp(-x)) in Q0; *x* has *integer_bits* integer bits.

    Source:
        gemmlowp::logistic.
    """
    negative = np.where(x > 0, -x, x)
    e = exp_on_negative_values(negative, integer_bits)
    y = one_over_one_plus_x(e)
    y = np.where(x > 0, y, _one(x.dtype) - y)
    y[x == 0] = _constant(1 << 30, x.dtype)
    return y


def reciprocal(x: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return 1 / x as Q0.31 mantissas and right shifts, for 0 < x < 2**32.

    >>> mantissa, shift = reciprocal(np.array([1, 3]))
    >>> (mantissa / 2.0**31 / 2.0**shift).round(6).tolist()
    [1.0, 0.333333]

    Source:
        GetReciprocal, tflite/kernels/internal/common.h.
    """
    leading_zeros = _leading_zeros(x)
    fraction = ((x.astype(np.int64) << leading_zeros) - (1 << 31)).astype(np.int32)
    return one_over_one_plus_x(fraction).astype(np.int32), 31 - leading_zeros


def log(x: NDArray[np.int32], integer_bits: int, result_bits: int) -> NDArray[np.int32]:
    """Return the natural logarithm of x >= 1, int32.

    Args:
        x: any shape, int32.
        integer_bits: number m of integer bits of x.
        result_bits: number m of integer bits of the result.

    >>> (log(np.array([10 << 19], np.int32), 12, 5) / 2**26).round(6).tolist()
    [2.302585]

    Source:
        log_x_for_x_greater_than_or_equal_to_1_impl, tflite/kernels/internal/common.h.
    """
    # x = r * 2**power, with r near 2**-1/4 after shifting by a whole or a half power.
    bits = result_bits + 1
    unit, quarter = np.int32(1 << (31 - bits)), np.int32(1 << (29 - bits))
    headroom = _leading_zeros(x).astype(np.int32)
    whole = saturating_shift_left(high_mul(x << (headroom - 1), np.int32(_HALF_SQRT_2)), 1)
    half_headroom = _leading_zeros(high_mul(x, np.int32(_HALF_SQRT_2))).astype(np.int32) - 1
    r = np.minimum(whole, saturating_shift_left(x, half_headroom))
    power = np.maximum(
        (integer_bits - headroom) * unit + quarter, (integer_bits - half_headroom) * unit - quarter
    )
    p = ((r.astype(np.int64) + _QUARTER_SQRT_2 + 1) >> 1).astype(np.int32)
    q = (r - np.int32(_QUARTER_SQRT_2)) * np.int32(2)
    square = high_mul(q, q)
    numerator = high_mul(q, r) + high_mul(high_mul(q, square), np.int32(_LOG_NUMERATOR))
    inner = np.int32(_LOG_INNER) + q + high_mul(square, np.int32(_LOG_SQUARE))
    denominator = high_mul(p, inner) + high_mul(q, np.int32(_LOG_LINEAR))
    fraction = high_mul(rounding_divide_by_pot(numerator, bits), one_over_one_plus_x(denominator))
    return saturating_shift_left(high_mul(power, np.int32(_LOG_2)) + fraction, 1)


def one_over_one_plus_x(x: Raw) -> Raw:
    """Return 1 / (1 + x) in Q0 for Q0 x in [0, 1). Source: one_over_one_plus_x_for_x_in_0_1."""
    return saturating_shift_left(_reciprocal(x), 1)


@lru_cache(maxsize=16)
def tanh_table(integer_bits: int) -> NDArray[np.int16]:
    """Return a table of :func:`tanh` of all int16, ``[65536], int16``.

    The index of an input *x*, with *integer_bits* integer bits, is ``x.view(uint16)``.
    """
    return _frozen(tanh(_every_int16(), integer_bits))


@lru_cache(maxsize=16)
def logistic_table(integer_bits: int) -> NDArray[np.int16]:
    """Return a table of :func:`logistic` of all int16, ``[65536], int16``.

    The index of an input *x*, with *integer_bits* integer bits, is ``x.view(uint16)``.
    """
    return _frozen(logistic(_every_int16(), integer_bits))


def _exp_on_quarter(x: Raw) -> Raw:
    """Return exp(x) for Q0 x in [-1/4, 0), by a Taylor series of degree 4 about -1/8."""
    x = x + _constant(1 << 28, x.dtype)
    x2 = high_mul(x, x)
    x3 = high_mul(x2, x)
    x4_over_4 = rounding_divide_by_pot(high_mul(x2, x2), 2)
    tail = rounding_divide_by_pot(high_mul(x4_over_4 + x3, _constant(_ONE_THIRD, x.dtype)) + x2, 1)
    constant = _constant(_EXP_MINUS_EIGHTH, x.dtype)
    y: Raw = high_mul(x + tail, constant) + constant  # below 1, so it cannot overflow
    return y


def _reciprocal(x: Raw) -> Raw:
    """Return 2 / (1 + x) in Q2 for Q0 x in (0, 1), by three Newton-Raphson steps."""
    wide, _ = _wide(x.dtype)
    half = ((x.astype(wide) + _one(x.dtype) + 1) >> 1).astype(x.dtype)
    y: Raw = _constant(_48_OVER_17, x.dtype) + high_mul(half, _constant(-_32_OVER_17, x.dtype))
    for _ in range(3):
        correction = high_mul(y, _f2_one(x.dtype) - high_mul(half, y))  # Q4
        y = y + saturating_shift_left(correction, 2)
    return y


def _leading_zeros(x: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of 0 bits before the first 1 of 32 bits, for 0 <= x < 2**32."""
    return 32 - np.frexp(x.astype(np.float64))[1].astype(np.int64)


def _wide(dtype: np.dtype[np.signedinteger[Any]]) -> tuple[type[np.signedinteger[Any]], int]:
    """Return the type for products of *dtype*, and *dtype*'s number of bits without the sign."""
    return (np.int32, 15) if dtype.itemsize == 2 else (np.int64, 31)


def _constant(q31: int, dtype: np.dtype[np.signedinteger[Any]]) -> Any:
    """Return the fixed-point constant *q31*, given in its int32 form, rounded to *dtype*."""
    if dtype.itemsize == 2:
        q31 = int(rounding_divide_by_pot(np.array(q31, np.int32), 16))
    return dtype.type(q31)


def _bit(position: int, dtype: np.dtype[np.signedinteger[Any]]) -> Any:
    return dtype.type(1 << position)


def _one(dtype: np.dtype[np.signedinteger[Any]]) -> Any:
    """Return the largest Q0 number of *dtype*, which stands for 1."""
    return dtype.type(np.iinfo(dtype).max)


def _f2_one(dtype: np.dtype[np.signedinteger[Any]]) -> Any:
    """Return the number 1 in the format Q2 of *dtype*."""
    return _bit(_wide(dtype)[1] - 2, dtype)


def _every_int16() -> NDArray[np.int16]:
    """Return all int16 in the order of their bits, 0 to 65535: ``[65536], int16``."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.int16)


def _frozen(table: NDArray[np.int16]) -> NDArray[np.int16]:
    table.flags.writeable = False
    return table
