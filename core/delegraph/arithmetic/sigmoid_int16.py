"""int16 LOGISTIC and TANH as tables of all 65,536 results.

Results are interpolated in a table of sigmoid(i / 24), except that builtin kernels use gemmlowp's
polynomials if the input scale is a certain power of two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic import gemmlowp
from delegraph.arithmetic.fixed_point import power_of_two
from delegraph.arithmetic.lookup_table import Integers, every_value
from delegraph.errors import OperatorError
from delegraph.operators.numerics import Numerics

if TYPE_CHECKING:
    from numpy.typing import NDArray

_INTEGER_BITS = 3
_FIXED_POINT_EXPONENT = _INTEGER_BITS - 15  # log2 of the scale that gemmlowp's functions expect


def logistic_table(scale: float, numerics: Numerics) -> NDArray[Any]:
    """Return 1 / (1 + exp(-q * scale)) in Q0.15 for every int16 q: ``[65536]``.

    *numerics* says whether the rounding of the builtin or the reference kernel is reproduced.

    Raises:
        OperatorError: the scale is below 4e-14 or above 5.3.

    Source:
        Logistic(int16_t), tflite/kernels/internal/{optimized/optimized_ops,
        reference/integer_ops/logistic}.h.
    """
    if numerics == "builtin" and power_of_two(scale) == _FIXED_POINT_EXPONENT:
        return gemmlowp.logistic_table(_INTEGER_BITS)
    x = _rescaled(scale)
    result = _interpolated(np.abs(x), 9, 0x7FFF << 10)
    result = np.where(x >= 0, result + (1 << 9), (1 << 25) - result + (1 << 9) - 1)
    return result >> 10


def tanh_table(scale: float, numerics: Numerics) -> NDArray[Any]:
    """Return tanh(q * scale) in Q0.15 for every int16 q: ``[65536]``.

    *numerics* says whether the rounding of the builtin or the reference kernel is reproduced.

    Raises:
        OperatorError: the scale is below 4e-14 or above 5.3.

    Source:
        Tanh(int16_t), tflite/kernels/internal/{optimized/optimized_ops,
        reference/integer_ops/tanh}.h.
    """
    exponent = power_of_two(scale) if numerics == "builtin" else None
    if exponent is not None and exponent - _FIXED_POINT_EXPONENT in (0, 1):
        q = every_value(np.dtype(np.int16)) << (exponent - _FIXED_POINT_EXPONENT)
        return gemmlowp.tanh(q.clip(-32768, 32767).astype(np.int16), _INTEGER_BITS)
    x = _rescaled(scale)
    result = _interpolated(np.abs(x), 8, 0xFFFF << 8)
    result = np.where(x >= 0, result - (1 << 23), (1 << 23) - result - 1)
    return (result + (1 << 7)) >> 8


def _rescaled(scale: float) -> Integers:
    """Return every int16 scaled to the table's units, 3 * 2**12 per unit.

    Raises:
        OperatorError: products exceed int32, the official kernels' type for them. Or the multiplier
            is 0, which the official kernels interpret as another scale.
    """
    multiplier, shift = scale * 4096 * 3, 0
    while multiplier <= 32767 / 2 and shift <= 30:
        multiplier, shift = multiplier * 2, shift + 1
    if not 1 <= multiplier < 1 << 16:
        raise OperatorError(f"input scale is {scale:g}, expected one from 4e-14 to 5.3")
    half = 1 << (shift - 1) if shift > 0 else 0
    return (every_value(np.dtype(np.int16)) * int(multiplier) + half) >> shift


def _interpolated(x: Integers, fraction_bits: int, saturated: int) -> Integers:
    """Return the table's values interpolated at *x*; *saturated* beyond the table's end.

    The low *fraction_bits* of *x* are the fraction between two entries.
    """
    table = _sigmoid_table()
    i = x >> fraction_bits
    low, high = table[np.minimum(i, 254)], table[np.minimum(i, 254) + 1]
    fraction = x & ((1 << fraction_bits) - 1)
    return np.where(i >= 255, saturated, (low << fraction_bits) + fraction * (high - low))


def _sigmoid_table() -> Integers:
    """Return the table of sigmoid(i / 24) in Q0.16, ``[256]``.

    Each value is increased by half of the interpolation error.

    Source:
        sigmoid_table_uint16, tflite/kernels/internal/common.h.
    """
    exact = 65536 / (1 + np.exp(-np.arange(0, 256.5, 0.5) / 24))
    here, middle, following = exact[:-1:2], exact[1::2], exact[2::2]
    table = np.rint(here + (middle - (here + following) / 2) / 2).astype(np.int64)
    table[-1] = 65535  # value at which interpolation saturates
    return table
