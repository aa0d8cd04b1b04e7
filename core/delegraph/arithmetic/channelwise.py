"""Constants for each channel: read from a tensor, and repeated for long loops.

With channels last, ``x * scale`` broadcasts over rows of only ``O`` values, so NumPy spends more
time on its loops than on arithmetic. Repeated constants give rows of about two thousand values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.errors import OperatorError
from delegraph.operators.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

TILE = 1 << 15
"""Number of values handled at once, so that float64 temporaries fit the second-level cache."""

_PATTERN = 2048
_LONG_ENOUGH = 512


def repeated(constants: NDArray[Any]) -> NDArray[Any]:
    """Return channels' values, ``[O]``, repeated to about 2048 values, for long inner loops.

    Arrays of 512 values or more stay unchanged.
    """
    if not 0 < len(constants) < _LONG_ENOUGH:
        return constants
    return np.tile(constants, _PATTERN // len(constants))


def by_pattern(compute: Callable[..., None], pattern: int, *arrays: NDArray[Any]) -> None:
    """Call *compute* on pieces of flat arrays with channels last.

    A piece is ``[rows, pattern]``; the last piece may be ``[n]``, shorter than *pattern*.

    Args:
        compute: function that is called with one piece of each array; each piece starts at the
            first channel.
        pattern: length of repeated constants, as :func:`repeated` returns them.
        arrays: ``[size]`` each, a whole number of channels.
    """
    size = arrays[0].size
    if not size:
        return
    whole = size - size % pattern
    step = max(TILE // pattern, 1) * pattern
    for start in range(0, whole, step):
        stop = min(start + step, whole)
        compute(*(array[start:stop].reshape(-1, pattern) for array in arrays))
    if whole < size:
        compute(*(array[whole:] for array in arrays))


def channel_parameters(tensor: Tensor) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Return a tensor's scales, float32, and zero points, int32, shaped to broadcast with it.

    A tensor without quantization has scale 0.

    Raises:
        OperatorError: the tensor has blockwise scales, or an invalid scale.
    """
    quantization = tensor.quantization
    if quantization is None:
        return np.zeros((), np.float32), np.zeros((), np.int32)
    if quantization.block_size:
        raise OperatorError(f"tensor {tensor.name!r} has blockwise scales, expected one a channel")
    scales = quantization.scales.astype(np.float32)
    zero_points = quantization.zero_points.astype(np.int32)
    if len(scales) == 1:
        return np.asarray(tensor.scale, np.float32), zero_points[:1].reshape(())
    if len(zero_points) != len(scales):
        zero_points = np.resize(zero_points[:1], len(scales))
    axis = quantization.quantized_dimension
    if not 0 <= axis < len(tensor.shape):
        raise OperatorError(
            f"tensor {tensor.name!r} has scales along axis {axis}, it has {len(tensor.shape)}"
        )
    shape = [1] * len(tensor.shape)
    shape[axis] = len(scales)
    return scales.reshape(shape), zero_points.reshape(shape)
