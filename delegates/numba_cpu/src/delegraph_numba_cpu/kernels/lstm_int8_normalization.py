"""Layer normalisation of the gates of integer LSTM layers; see ``lstm_integer_cell._LayerNorm``."""

from __future__ import annotations

from delegraph_numba_cpu.codegen.intrinsics import jit, load_i16, load_i32, store_i16
from delegraph_numba_cpu.kernels.fixed_point import inverse_sqrt, scaled, wrapped


@jit
def normalise(gate, cells, weights, bias, multiplier, shift, least_variance):
    """Normalise the *cells* int16 of a gate, in place, to mean 0 and variance 1.

    Then multiply them by *weights*, add *bias*, and rescale them by *multiplier* and *shift* to
    Q3.12. *least_variance* replaces a variance below 1. *gate* is the address of the values,
    *weights* that of int16, and *bias* that of int32.
    """
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
