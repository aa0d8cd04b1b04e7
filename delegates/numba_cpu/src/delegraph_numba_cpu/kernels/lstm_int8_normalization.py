"""Layer normalisation of the gates of integer LSTM layers; see ``lstm_integer_cell._LayerNorm``."""

from __future__ import annotations

from delegraph_numba_cpu.codegen.intrinsics import jit, load_i16, load_i32, store_i16
from delegraph_numba_cpu.kernels.fixed_point import INT32_MAX, INT32_MIN, scaled, wrapped

HALF_SQRT_2 = 1518500250  # Q0.31


@jit
def normalise(gate, cells, weights, bias, multiplier, shift, least_variance):
    """Normalise a gate to mean 0 and variance 1, scale it, and add the bias: int16 in Q3.12."""
    total, squares = 0, 0
    for i in range(cells):
        value = load_i16(gate + 2 * i) + 0
        total += value
        squares += value * value
    mean = divided(1024 * total, cells)
    variance = wrapped(divided(squares * ((1 << 20) // cells) - mean * mean, 1 << 20))
    if variance < 1:
        variance = least_variance
    inverse, inverse_shift = inverse_sqrt(variance)
    for i in range(cells):
        centred = 1024 * load_i16(gate + 2 * i) - mean
        value = scaled(centred, inverse, inverse_shift, False) * load_i16(weights + 2 * i)
        value += load_i32(bias + 4 * i)
        value = divided(value + (512 if value > 0 else -512), 1024)
        value = scaled(value, multiplier, shift, False)
        store_i16(gate + 2 * i, min(max(value, -32768), 32767))


@jit
def divided(x, divisor):
    """Return ``x / divisor`` truncated towards zero, as in C."""
    return -(-x // divisor) if x < 0 else x // divisor


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
