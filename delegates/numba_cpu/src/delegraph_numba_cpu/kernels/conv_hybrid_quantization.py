"""How float activations become bytes: a row's scale and zero point."""

from __future__ import annotations

import math

import numpy as np

from delegraph_numba_cpu.codegen.intrinsics import jit

LARGEST, NAN = np.finfo(np.float32).max, np.float32(np.nan)


@jit
def parameters(low, high, is_asymmetric):
    """Return a row's scale, its inverse, zero point, and the smallest int8.

    Of rows that are not all finite, whose limits are NaN, the scale is NaN, and so are products;
    and of rows from end to end of float32 that need a zero point.

    As ``delegraph.arithmetic.quantize_rows`` does, operation by operation: a scale that is off by a
    bit rounds some activations to the other side.
    """
    one = np.float32(1)
    if not low <= high or (is_asymmetric and not high - low <= LARGEST):
        return NAN, NAN, 0, -128 if is_asymmetric else -127
    if not is_asymmetric:
        largest = max(-low, high)
        if largest == 0:
            return one, one, 0, -127
        return largest / np.float32(127), np.float32(127) / largest, 0, -127
    if low == high:
        return one, one, 0, -128
    least, most = np.float64(low), np.float64(high)
    scale = np.float64(high - low) / 255
    is_low_closer = 128 + abs(least / scale) < 127 + abs(most / scale)
    real_zero = -128 - least / scale if is_low_closer else 127 - most / scale
    zero = min(max(real_zero, -128.0), 127.0)
    whole = math.floor(abs(zero) + 0.5)
    narrow = np.float32(scale)
    return narrow, one / narrow, -whole if zero < 0 else whole, -128
