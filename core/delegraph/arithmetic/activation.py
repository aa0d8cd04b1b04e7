"""Fused activations: their clamping ranges, and their application to float results."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic.channelwise import by_pattern, repeated
from delegraph.errors import OperatorError
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

try:
    from numpy._core.umath import clip as clip  # type: ignore[attr-defined]  # not in its stubs
except ImportError:
    from numpy import clip as clip
# This ufunc, called with four positional arguments, is faster than ``np.clip`` and the method of
# arrays: their overhead exceeds the time to clip a small tensor.

_FLOAT_RANGES: dict[Act, tuple[float, float]] = {
    Act.NONE: (-np.inf, np.inf),
    Act.RELU: (0.0, np.inf),
    Act.RELU_N1_TO_1: (-1.0, 1.0),
    Act.RELU6: (0.0, 6.0),
}

_FLOAT32 = np.dtype(np.float32)

_INTEGER_RANGES = {
    TensorType.UINT8: (0, 255),
    TensorType.INT8: (-128, 127),
    TensorType.INT16: (-32768, 32767),
}


@cache
def float_activation_range(activation: int) -> tuple[float, float]:
    """Return the range to which a fused activation clamps float results.

    For TANH and SIGN_BIT the range is unlimited.

    Source:
        CalculateActivationRange, tflite/kernels/kernel_util.h.
    """
    return _FLOAT_RANGES.get(Act(activation), (-np.inf, np.inf))


def finite_activation_range(
    activation: int, dtype: np.dtype[Any] = _FLOAT32
) -> tuple[float, float]:
    """Return the clamping range of *activation*, with finite bounds.

    Infinite bounds of :func:`float_activation_range` are replaced by the limits of *dtype*.
    """
    low, high = float_activation_range(activation)
    largest = float(np.finfo(dtype).max)
    return max(low, -largest), min(high, largest)


def quantized_activation_range(activation: int, output: Tensor) -> tuple[int, int]:
    """Return the range of stored integers to which a fused activation clamps *output*.

    Raises:
        OperatorError: *output* is not uint8, int8 or int16, or a bound overflows an int32.

    Source:
        CalculateActivationRangeQuantized, tflite/kernels/kernel_util.cc.
    """
    if output.type not in _INTEGER_RANGES:
        raise OperatorError(f"output type is {output.type.name}, expected UINT8, INT8 or INT16")
    qmin, qmax = _INTEGER_RANGES[output.type]
    low, high = float_activation_range(activation)
    if low > -math.inf:
        qmin = max(qmin, _quantize(low, output))
    if high < math.inf:
        qmax = min(qmax, _quantize(high, output))
    return qmin, qmax


def apply_activation(activation: int, x: NDArray[Any]) -> None:
    """Apply a fused activation to the float array *x*, in place.

    Source:
        ApplyActivationToVector, tflite/kernels/internal/tensor_utils.h.
    """
    match Act(activation):
        case Act.TANH:
            np.tanh(x, out=x)
        case Act.SIGN_BIT:
            np.copyto(x, np.signbit(x))
        case _:
            clamp(x, *float_activation_range(activation))


def clamp(x: NDArray[Any], low: float, high: float) -> None:
    """Clamp the elements of *x* to the range from *low* to *high*, in place."""
    if np.isfinite(low):
        if np.isfinite(high):
            np.clip(x, low, high, out=x)
        else:
            np.maximum(x, low, out=x)
    elif np.isfinite(high):
        np.minimum(x, high, out=x)


def _quantize(value: float, output: Tensor) -> int:
    """Return the stored integer of *output* nearest to *value*, computed in float32 like in C."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.float32(value) / np.float32(output.scale)
    if not abs(ratio) < 2**31:
        raise OperatorError(
            f"activation bound {value} is out of range at output scale {output.scale}"
        )
    return output.zero_point + int(np.copysign(np.floor(np.abs(ratio) + np.float32(0.5)), ratio))


class BiasClamp:
    """Adds a bias to float results with channels last and clamps them, in place.

    Args:
        bias: ``[O], float32``.
        low: lower bound.
        high: upper bound.
    """

    def __init__(self, bias: NDArray[np.float32], low: float, high: float) -> None:
        self._bias = repeated(bias)
        self._low = None if low == -np.inf else np.float32(low)
        self._high = None if high == np.inf else np.float32(high)

    def __call__(self, y: NDArray[Any]) -> None:
        """Add the bias to *y*, ``[..., O], float32``, contiguous, and clamp the sum, in place."""
        by_pattern(self._compute, len(self._bias), y.reshape(-1))

    def _compute(self, y: NDArray[Any]) -> None:
        y += self._bias[: y.shape[-1]]
        if self._low is not None:
            np.maximum(y, self._low, out=y)
        if self._high is not None:
            np.minimum(y, self._high, out=y)


def quantized_clip(clip: float, tensor: Tensor, largest: int) -> int:
    """Return a clip value of an LSTM in stored units of *tensor*; 0 means no clip.

    Args:
        clip: the value as a real number.
        tensor: tensor with the scale.
        largest: limit of the result; a larger value becomes *largest*.
    """
    if not clip > 0:
        return 0
    return int(np.minimum(np.float32(clip) / np.float32(tensor.scale), np.float32(largest)))
