"""Quantization of float activations at each invoke; each row has its own scale."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic.fixed_point import round_half_away

Floats = NDArray[np.float32]

_BELOW_HALF = np.nextafter(np.float32(0.5), np.float32(0))
"""Number that is added before truncation, so that halves are rounded up, but nothing less.

Adding 0.5 would also round up the largest number below a half.
"""


def quantize_rows(
    rows: Floats, *, asymmetric: bool
) -> tuple[NDArray[np.int8], Floats, NDArray[np.int32]]:
    """Quantise each row to int8; return the integers, the scales and the zero points.

    Args:
        rows: ``[R, I], float32``.
        asymmetric: whether rows get a zero point; without zero points, values are in -127..127.

    Returns:
        ``[R, I], int8``, scales ``[R], float32``, zero points ``[R], int32``. A row of zeros has
        scale 1 and zero point 0.

    >>> quantize_rows(np.array([[0, 2.54], [-1, 1]], np.float32), asymmetric=False)[0].tolist()
    [[0, 127], [-127, 127]]

    Source:
        BatchQuantizeFloats, tflite/kernels/internal/tensor_utils.h.
    """
    parameters = _asymmetric if asymmetric else _symmetric
    ends = zip(rows.min(axis=1, initial=0), rows.max(axis=1, initial=0), strict=True)
    found = [parameters(low, high) for low, high in ends]
    scales = np.array([scale for scale, _, _ in found], np.float32)
    inverses = np.array([inverse for _, inverse, _ in found], np.float32)
    zero_points = np.array([zero_point for _, _, zero_point in found], np.int32)
    values = rows * inverses[:, np.newaxis]
    values += np.copysign(_BELOW_HALF, values)
    np.trunc(values, out=values)
    if asymmetric:
        values += zero_points.astype(np.float32)[:, np.newaxis]
    np.clip(values, -128 if asymmetric else -127, 127, out=values)
    return values.astype(np.int8), scales, zero_points


def _symmetric(low: np.float32, high: np.float32) -> tuple[np.float32, np.float32, int]:
    """Return scale, inverse scale and the zero point 0 for values between *low* and *high*.

    Source:
        PortableSymmetricQuantizeFloats, reference/portable_tensor_utils.cc.
    """
    largest = max(-low, high)
    if largest == 0:
        return np.float32(1), np.float32(1), 0
    return largest / np.float32(127), np.float32(127) / largest, 0


def _asymmetric(low: np.float32, high: np.float32) -> tuple[np.float32, np.float32, int]:
    """Return scale, inverse scale and best zero point for values between *low* and *high*.

    Source:
        NeonAsymmetricQuantizeFloats, optimized/neon_tensor_utils.cc, which x86 builds take too. The
        portable version subtracts in float64, and adds the zero point before it rounds.
    """
    least, most = float(low), float(high)
    if least == most:
        return np.float32(1), np.float32(1), 0
    scale = float(high - low) / 255  # the difference in float32
    if not math.isfinite(scale):  # the official kernel's products are NaN too
        return np.float32(np.nan), np.float32(np.nan), 0
    # Each end gives a zero point; the one with the smaller rounding error is used.
    is_low_closer = 128 + abs(least / scale) < 127 + abs(most / scale)
    zero_point = -128 - least / scale if is_low_closer else 127 - most / scale
    zero_point = round_half_away(min(max(zero_point, -128), 127))
    return np.float32(scale), np.float32(1) / np.float32(scale), zero_point
