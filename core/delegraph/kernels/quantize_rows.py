"""Quantisation of float activations on the fly, each row with a scale of its own.

:mod:`delegraph.kernels.hybrid` has the same for whole tensors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def quantize_rows(
    rows: Floats, *, asymmetric: bool
) -> tuple[NDArray[np.int8], Floats, NDArray[np.int32]]:
    """Return each row as int8, its scale and its zero point.

    Args:
        rows: ``[R, I], float32``.
        asymmetric: whether rows get a zero point; without one, values are in -127..127.

    Returns:
        ``[R, I], int8``, scales ``[R], float32``, zero points ``[R], int32``. A row of zeros has
        scale 1 and zero point 0.

    >>> quantize_rows(np.array([[0, 2.54], [-1, 1]], np.float32), asymmetric=False)[0].tolist()
    [[0, 127], [-127, 127]]

    Source:
        BatchQuantizeFloats, tflite/kernels/internal/tensor_utils.h.
    """
    return _asymmetric(rows) if asymmetric else _symmetric(rows)


def _symmetric(rows: Floats) -> tuple[NDArray[np.int8], Floats, NDArray[np.int32]]:
    """Source: PortableSymmetricQuantizeFloats, reference/portable_tensor_utils.cc."""
    largest = np.abs(rows).max(axis=1, initial=0)
    largest[largest == 0] = 127  # any will do; this gives scale 1
    quantized = _round_half_away(rows * (np.float32(127) / largest)[:, None])
    np.clip(quantized, -127, 127, out=quantized)
    scales = largest / np.float32(127)
    return quantized.astype(np.int8), scales, np.zeros(len(rows), np.int32)


def _asymmetric(rows: Floats) -> tuple[NDArray[np.int8], Floats, NDArray[np.int32]]:
    """Source: PortableAsymmetricQuantizeFloats, reference/portable_tensor_utils.cc."""
    low = rows.min(axis=1, initial=0).astype(np.float64)
    high = rows.max(axis=1, initial=0).astype(np.float64)
    zero = low == high
    scale = np.where(zero, 1.0, (high - low) / 255)
    # Both ends give a zero point; the one with the smaller rounding error counts.
    is_low_closer = 128 + np.abs(low / scale) < 127 + np.abs(high / scale)
    zero_point = np.where(is_low_closer, -128 - low / scale, 127 - high / scale)
    zero_point = _round_half_away(zero_point.clip(-128, 127)).astype(np.float32)
    zero_point[zero] = 0
    scales = scale.astype(np.float32)
    quantized = _round_half_away(zero_point[:, None] + rows * (np.float32(1) / scales)[:, None])
    np.clip(quantized, -128, 127, out=quantized)
    return quantized.astype(np.int8), scales, zero_point.astype(np.int32)


def _round_half_away(x: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the nearest whole numbers, halves away from zero; exact for any float32."""
    wide = x.astype(np.float64)
    wide += np.copysign(0.5, wide)
    return np.trunc(wide, out=wide)
