"""Hybrid products: float activations quantised on the fly, integer weights, float results.

Source:
    SymmetricQuantizeFloats, AsymmetricQuantizeFloats and MatrixBatchVectorMultiplyAccumulate,
    tflite/kernels/internal/reference/portable_tensor_utils.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.kernels.activation import clamp, float_activation_range
from delegraph.kernels.channelwise import by_pattern, repeated
from delegraph.kernels.exact_matmul import integer_weights
from delegraph.kernels.fixed_point import round_half_away
from delegraph.kernels.tensor import Tensor
from delegraph.kernels.weights import bias_or_zeros, once_if_constant, stored_integers

_BELOW_HALF = np.nextafter(np.float32(0.5), np.float32(0))


def quantize_symmetric(x: NDArray[np.float32], out: NDArray[Any]) -> tuple[np.float32, int]:
    """Store *x* as integers in -127..127 in *out* and return their scale, and 0 as zero point.

    Args:
        x: any shape, float32.
        out: the same shape, float32.
    """
    largest = np.float32(max(abs(x.min(initial=0)), abs(x.max(initial=0))))
    if largest == 0:
        out.fill(0)
        return np.float32(1), 0
    np.multiply(x, np.float32(127) / largest, out=out)
    _round_half_away(out)
    np.clip(out, -127, 127, out=out)
    return largest / np.float32(127), 0


def quantize_asymmetric(x: NDArray[np.float32], out: NDArray[Any]) -> tuple[np.float32, int]:
    """Store *x* as integers in -128..127 in *out* and return their scale and zero point.

    Args:
        x: any shape, float32.
        out: the same shape, float32.
    """
    low, high = float(x.min(initial=0)), float(x.max(initial=0))
    if low == high:
        out.fill(0)
        return np.float32(1), 0
    scale = (high - low) / 255
    from_low, from_high = -128 - low / scale, 127 - high / scale
    is_low_closer = 128 + abs(low / scale) < 127 + abs(high / scale)
    zero_point = round_half_away(min(max(from_low if is_low_closer else from_high, -128), 127))
    np.multiply(x, np.float32(1) / np.float32(scale), out=out)
    out += np.float32(zero_point)
    _round_half_away(out)
    np.clip(out, -128, 127, out=out)
    return np.float32(scale), zero_point


def _round_half_away(values: NDArray[Any]) -> None:
    # The largest float32 below 1/2 carries halves over and nothing less.
    values += np.copysign(_BELOW_HALF, values)
    np.trunc(values, out=values)


@dataclass(frozen=True, slots=True, eq=False)
class HybridWeights:
    """Weights, bias and scales of a hybrid product.

    Attributes:
        matrices: one ``[K, O / groups]`` for each group.
        sums: column sums, ``[O], int64``.
        scales: of the weights, ``[O], float32``.
        bias: ``[O], float32``.
        low: lower bound of results.
        high: upper bound of results.
    """

    matrices: tuple[NDArray[Any], ...]
    sums: NDArray[np.int64]
    scales: NDArray[np.float32]
    bias: NDArray[np.float32]
    low: float
    high: float

    def at(self, scale: np.float32, zero_point: int) -> HybridResult:
        """Return what makes results of activations quantised with *scale* and *zero_point*."""
        return HybridResult(self, scale, zero_point)


class HybridResult:
    """Turns accumulators into float results: ``(acc - zero_point * sums) * scales + bias``."""

    def __init__(self, weights: HybridWeights, scale: np.float32, zero_point: int) -> None:
        self._scales = repeated(weights.scales * scale)
        self._bias = repeated(weights.bias)
        self._offset = repeated(weights.sums * np.float64(zero_point)) if zero_point else None
        self._range = weights.low, weights.high

    def __call__(self, acc: NDArray[Any], out: NDArray[np.float32]) -> None:
        """Store results in *out*.

        Args:
            acc: ``[..., O]``, contiguous, exact integers; overwritten.
            out: the same shape, contiguous.
        """
        by_pattern(self._store, len(self._scales), acc.reshape(-1), out.reshape(-1))

    def _store(self, acc: NDArray[Any], out: NDArray[np.float32]) -> None:
        length = acc.shape[-1]
        if self._offset is not None:
            np.subtract(acc, self._offset[:length], out=acc, casting="same_kind")
        np.multiply(acc, self._scales[:length], out=out, casting="same_kind")
        out += self._bias[:length]
        clamp(out, *self._range)


class HybridProduct:
    """The weights of one hybrid node, kept ready between invokes.

    Args:
        weight: ``[O, ...]``, integers; uint8 ones are read as int8, as the official kernels do.
        bias: ``[O]`` or None.
        scales: of the weights, ``[O], float32``.
        activation: fused activation; only clamps are applied.
        groups: parts that the outputs are divided into.

    Attributes:
        current: gives the :class:`HybridWeights`.
        dtype: the float type that input matrices and accumulators must have.
    """

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        scales: NDArray[np.float32],
        activation: int,
        groups: int = 1,
    ) -> None:
        channels = weight.shape[0]
        low, high = float_activation_range(activation)
        is_fixed = weight.is_constant_or_persistent

        def plan() -> HybridWeights:
            integers = stored_integers(weight).view(np.int8).reshape(channels, -1)
            weights = integer_weights(
                integers.astype(np.int16), np.dtype(np.int8), groups, is_fixed=is_fixed
            )
            values = bias_or_zeros(bias, channels, np.float32)
            return HybridWeights(weights.matrices, weights.sums, scales, values, low, high)

        self.current = once_if_constant(plan, weight, bias)
        self.dtype = self.current().matrices[0].dtype if is_fixed else np.dtype(np.float64)
