"""Comparing results with TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def difference(got: NDArray[Any], right: NDArray[Any], tolerance: float) -> str:
    """Return text about the difference between *got* and the right result; empty if none.

    Args:
        got: the result in question.
        right: TensorFlow's.
        tolerance: allowed difference, relative to the largest finite magnitude of *right*.
    """
    if (got.dtype, got.shape) != (right.dtype, right.shape):
        return f"is {got.dtype}{list(got.shape)}, expected {right.dtype}{list(right.shape)}"
    if got.dtype.hasobject or tolerance == 0:
        equal = got == right
        if not got.dtype.hasobject and got.dtype.kind not in "iub":
            equal |= (got != got) & (right != right)
        return "" if np.all(equal) else f"is {_few(got, ~equal)}, expected {_few(right, ~equal)}"
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), right.astype(wide)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return f"is {_few(a, ~finite)}, expected {_few(b, ~finite)}"
    limit = tolerance * float(np.max(np.abs(b[finite]), initial=1e-30))
    far = finite & ~(np.abs(np.where(finite, a, 0) - np.where(finite, b, 0)) <= limit)
    return f"is {_few(a, far)}, expected {_few(b, far)} within {limit:.2g}" if far.any() else ""


def _few(values: NDArray[Any], where: Any) -> str:
    chosen = values[where] if values.ndim else values.reshape(1)
    return np.array2string(chosen[:4], precision=9)
