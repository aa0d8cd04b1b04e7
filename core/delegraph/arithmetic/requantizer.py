"""Requantisation to a whole integer type, for sums of any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from delegraph.arithmetic.requantize import Requantize, fixed_point_scaling, int64_scaling
from delegraph.operators.registration import OpContext

Store = Callable[[NDArray[Any], NDArray[Any]], None]
"""Requantises sums, ``[..., O]`` in any float type, into an integer array of that shape.

Both are contiguous.
"""


def requantizer(
    context: OpContext,
    multipliers: NDArray[np.float64],
    bias: NDArray[np.integer[Any]],
    bound: float,
    zero_point: int,
    dtype: DTypeLike,
    *,
    limits: tuple[int, int] | None = None,
    int64_sums: bool = False,
) -> Store:
    """Return the function that requantises sums as most integer kernels do.

    Args:
        context: for working memory.
        multipliers: from sums to units of the output, ``[O], float64``.
        bias: added to the sums first, ``[O]``.
        bound: no sum without bias is larger in magnitude.
        zero_point: of the output.
        dtype: of the output.
        limits: smallest and largest value; those of *dtype* if not given.
        int64_sums: whether the official kernel adds up in 64 bits, and rounds once.

    Source:
        MultiplyByQuantizedMultiplier, tflite/kernels/internal/common.cc.
    """
    scaling = int64_scaling(multipliers) if int64_sums else fixed_point_scaling(multipliers, True)
    kind = np.dtype(dtype)
    low, high = limits or (int(np.iinfo(kind).min), int(np.iinfo(kind).max))
    wide_bias = bias.astype(np.int64)
    largest = bound + float(np.abs(wide_bias).max(initial=0))
    if largest * max(2 * float(multipliers.max(initial=0)), 1.0) < 2**31:
        return Requantize(context, scaling, wide_bias, bound, zero_point, low, high, kind)

    def wrapping(acc: NDArray[Any], out: NDArray[Any]) -> None:
        # What leaves 32 bits wraps before it saturates, as in the official kernels.
        scaled = scaling.exact(acc.astype(np.int64) + wide_bias)
        out[...] = np.clip(scaled.astype(np.int64) + zero_point, low, high)

    return wrapping
