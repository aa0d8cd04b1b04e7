"""Fixed-point products of single values, as the official integer kernels round them."""

from __future__ import annotations

from delegraph_numba_cpu.codegen.intrinsics import jit

INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1

HALF_SQRT_2 = 1518500250  # Q0.31


@jit
def wrapped(value):
    """Return the low 32 bits of an int64 as a signed number."""
    return ((value - INT32_MIN) & 0xFFFFFFFF) + INT32_MIN


@jit
def scaled(value, multiplier, shift, is_up):
    """Return ``value * multiplier * 2**(shift - 31)``, rounded after each of two steps.

    The second rounding rounds halves up if *is_up*, else away from zero.
    """
    product = wrapped(value << max(shift, 0)) * multiplier
    high = min((product + (1 << 30)) >> 31, INT32_MAX)
    right = max(-shift, 0)
    half = (1 << right) >> 1
    if high < 0 and right > 0 and not is_up:
        half -= 1
    return (high + half) >> right


@jit
def high_product(a, b):
    """Return ``a * b / 2**31``, rounded to nearest, halves up."""
    return min((a * b + (1 << 30)) >> 31, INT32_MAX)


@jit
def shifted_left(x, count):
    """Return ``x * 2**count``, clamped to int32."""
    return min(max(x << count, INT32_MIN), INT32_MAX)


@jit
def inverse_sqrt(x):
    """Return the Q31 multiplier and the shift of ``1 / sqrt(x)``, as gemmlowp computes them."""
    if x < 2:
        return INT32_MAX, 0
    bits = 0
    while x >> bits:
        bits += 1
    pairs = (29 - bits) // 2  # shift x left by so many pairs of bits, into [2**27, 2**29)
    value = x >> 2 if pairs < 0 else x << (2 * pairs)
    half = ((value >> 1) + 1) >> 1
    y = 1 << 28  # 1 in Q3; five Newton-Raphson steps
    for _ in range(5):
        cube = shifted_left(high_product(high_product(y, y), y), 6)
        y = shifted_left(high_product(y, 3 << 27) - high_product(half, cube), 3)
    y = high_product(y, HALF_SQRT_2)
    right = 11 - pairs
    return y << max(-right, 0), -max(right, 0)
