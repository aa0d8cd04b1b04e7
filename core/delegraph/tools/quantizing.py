"""Converts real numbers to the stored integers of a quantized tensor, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.tools.model_call import Details


def quantized(values: NDArray[Any], details: Details) -> NDArray[Any]:
    """Return ``round(values / scale) + zero_point`` in the dtype of *details*, saturated.

    For a tensor without a scale, numbers are only rounded.

    Args:
        values: the stored values.
        details: details of the tensor.
    """
    scale, zero_point = details["quantization"]
    dtype: np.dtype[Any] = np.dtype(details["dtype"])
    limits = np.iinfo(dtype.type)
    stored = np.rint(values.astype(np.float64) / (scale or 1.0)) + zero_point
    return np.asarray(np.clip(stored, limits.min, limits.max), dtype)


def dequantized(values: NDArray[Any], details: Details) -> NDArray[np.float64]:
    """Return stored *values* as real numbers: ``scale * (values - zero_point)`` if quantized.

    Args:
        values: the stored values.
        details: details of the tensor.
    """
    scale, zero_point = details["quantization"]
    real = values.astype(np.float64)
    return real if scale == 0.0 else (real - zero_point) * scale


def real_values(values: NDArray[Any], details: Details) -> NDArray[Any]:
    """Return stored *values* of a quantized tensor as real numbers; others unchanged.

    Args:
        values: the stored values.
        details: details of the tensor.
    """
    return dequantized(values, details) if details["quantization"][0] else values
