"""Scale and zero point of a row of float activations that are quantized to bytes at run time."""

from __future__ import annotations

import math

import numpy as np

from delegraph_numba_cpu.codegen.intrinsics import jit

LARGEST, NAN = np.finfo(np.float32).max, np.float32(np.nan)


@jit
def parameters(low, high, is_asymmetric):
    """Return the scale of a row, its inverse, the zero point, and the least quantised value.

    The values of the row lie from *low* to *high*.

    The scale, and so all products, are NaN in two cases. In the first, a value of the row is not
    finite, which makes the limits NaN. In the second, the range of a row with a zero point exceeds
    float32.

    The operations are those of ``delegraph.arithmetic.quantize_rows``, one by one. A difference in
    the last bit of the scale would round some activations differently.
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
