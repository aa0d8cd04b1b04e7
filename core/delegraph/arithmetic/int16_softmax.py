"""SOFTMAX of int16 in fixed point, for NumPy arrays and other arrays with operators (JAX)."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic.fixed_point import multiply_by_quantized_multiplier, quantize_multiplier
from delegraph.arithmetic.lookup_table import Integers, interpolate, interpolation_points
from delegraph.lazy_dataclass import dataclass

_SPAN = np.float64(65535)
_DOUBLE_MANTISSA, _DOUBLE_BIAS = 52, 1022


@dataclass(frozen=True, slots=True, eq=False)
class Int16Softmax:
    """Function that converts rows of stored integers, ``[..., C], int64``, to SOFTMAX in Q0.15.

    Attributes:
        multiplier: Q31 mantissa that scales differences to the range of the exponentials' table.
        shift: left shift of the mantissa.
        exponentials: values of exp at 513 points, for interpolation, ``[513], int64``; an array of
            the same library as the rows.
        reciprocals: values of 1 / (1 + x) at 513 points, in the same form.

    Source:
        SoftmaxInt16, tflite/kernels/internal/reference/softmax.h.
    """

    multiplier: int
    shift: int
    exponentials: Integers
    reciprocals: Integers

    def __call__(self, q: Integers) -> Integers:
        """Return the SOFTMAX of each row of *q*, ``[..., C]``, in Q0.15."""
        difference = q - q.max(-1, keepdims=True, initial=-32768)
        scaled = multiply_by_quantized_multiplier(difference, self.multiplier, self.shift)
        positions = (scaled.astype(np.int64) + 32767).clip(-32768, 32767)
        return self._normalized(interpolate(positions, self.exponentials))

    def _normalized(self, exps: Integers) -> Integers:
        """Return *exps*, Q0.15 numbers, divided by the sum of their row, in Q0.15."""
        total = exps.sum(-1, keepdims=True)
        leading_zeros = 32 - _bit_length(total)
        shifted = ((total << (leading_zeros - 1)) + (1 << 13)) >> 14
        positions = (shifted - (1 << 15) - (1 << 16)).clip(-32768, 32767)
        inverse = interpolate(positions, self.reciprocals)
        right = 31 - leading_zeros
        rounded = (exps * inverse + (np.int64(1) << (right - 1))) >> right
        return rounded.clip(0, 32767)


def int16_softmax(scale: float, beta: float) -> Int16Softmax:
    """Return the function that computes SOFTMAX of ``beta * x`` for stored integers of *scale*."""
    factor = float(np.float32(scale) * np.float32(beta)) / (10.0 / 65535.0)
    exponentials = interpolation_points(10 / _SPAN, 32767, 2 / _SPAN, 0, np.exp)
    reciprocals = interpolation_points(1 / _SPAN, -32768, 2 / _SPAN, 0, lambda v: 1 / (1 + v))
    return Int16Softmax(*quantize_multiplier(factor), exponentials, reciprocals)


def _bit_length(x: Integers) -> Integers:
    """Return the bit lengths of *x*, 1 to 2**52, computed from the exponents of float64."""
    return (x.astype(np.float64).view(np.int64) >> _DOUBLE_MANTISSA) - _DOUBLE_BIAS
