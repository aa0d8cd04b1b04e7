"""Hybrid products: float activations quantised at each invoke, integer weights, float results.

:mod:`delegraph.arithmetic.quantize_rows` quantises activations. This module stores the weights and
scales the results back to floats.

Source:
    MatrixBatchVectorMultiplyAccumulate, tflite/kernels/internal/reference/portable_tensor_utils.cc.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic.activation import clamp, float_activation_range
from delegraph.arithmetic.channelwise import by_pattern, repeated
from delegraph.arithmetic.exact_matmul import (
    IntegerWeights,
    exact_float,
    integer_weights,
    shared_weights,
)
from delegraph.arithmetic.weights import at_first_use, bias_or_zeros, dense_values
from delegraph.graph.dtypes import BITS
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LARGEST_INPUT = 255  # the distance between two int8


_FOUR_BIT_OUTPUTS, _FOUR_BIT_DEPTH = 4, 32
"""Smallest number of outputs, and smallest depth, for the official 4-bit kernel."""


def rows_have_zero_points(weight: Tensor, *, asked: bool) -> bool:
    """Whether the input rows of FULLY_CONNECTED are quantized with zero points.

    The official kernel for constant 4-bit weights never uses zero points, even if the options
    request them.

    Args:
        weight: weights, ``[O, K]``.
        asked: value of ``asymmetric_quantize_inputs`` in the options.

    Source:
        PrepareImpl, tflite/kernels/fully_connected.cc; the reference kernel follows the options.
    """
    outputs, depth = weight.shape
    is_four_bit = (
        weight.type is TensorType.INT4
        and weight.is_constant
        and outputs >= _FOUR_BIT_OUTPUTS
        and depth >= _FOUR_BIT_DEPTH
        and depth % 2 == 0
    )
    return asked and not is_four_bit


@dataclass(frozen=True, eq=False)
class HybridWeights:
    """Integer weights of a hybrid product, with bias and scales, ready for an invoke.

    Attributes:
        matrices: the integer weights as float arrays, in the shape that the caller's products need.
        sums: sums of each output's weights, ``[O], int64``.
        scales: scales of the weights, ``[O], float32``.
        bias: bias of each output, ``[O], float32``.
        low: lower bound of results.
        high: upper bound of results.
        integers: the ``IntegerWeights`` that has *matrices* and is shared with other nodes, or
            None.
    """

    matrices: tuple[NDArray[Any], ...]
    sums: NDArray[np.int64]
    scales: NDArray[np.float32]
    bias: NDArray[np.float32]
    low: float
    high: float
    integers: IntegerWeights | None = None

    @cached_property
    def repeated(self) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]]:
        """Scales, sums and bias, repeated to about 2048 values for long inner loops."""
        return repeated(self.scales), repeated(self.sums), repeated(self.bias)

    def at(self, scale: np.float32, zero_point: int) -> HybridResult:
        """Return the function that converts accumulators for one input to float results.

        Args:
            scale: scale with which the input was quantized.
            zero_point: zero point with which the input was quantized.
        """
        return HybridResult(self, scale, zero_point)


class HybridResult:
    """Converts accumulators to float results: ``(acc - zero_point * sums) * scales + bias``."""

    def __init__(self, weights: HybridWeights, scale: np.float32, zero_point: int) -> None:
        scales, sums, self._bias = weights.repeated
        self._scales = scales * scale
        self._offset = sums * np.float64(zero_point) if zero_point else None
        self._range = weights.low, weights.high

    def __call__(self, acc: NDArray[Any], out: NDArray[np.float32]) -> None:
        """Scale the accumulators *acc* to real numbers and store them in *out*.

        Args:
            acc: ``[..., O]``, contiguous, exact integers; it is overwritten.
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
    """Weights of one hybrid node, prepared once and kept between invokes.

    Args:
        weight: ``[O, ...]``, integers; uint8 weights are read as int8, as in the official kernels.
        bias: ``[O]``; None if absent.
        scales: scales of the weights, ``[O], float32``.
        activation: fused activation; only clamps are applied.
        groups: number of groups into which the outputs are divided.

    Attributes:
        current: function that returns the :class:`HybridWeights`, with one matrix ``[K, O /
            groups]`` for each group.
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

        def integers() -> IntegerWeights:
            values = dense_values(weight).view(np.int8)
            return integer_weights(values, _LARGEST_INPUT, groups, is_fixed=is_fixed)

        form = _LARGEST_INPUT, groups, "hybrid"
        current = at_first_use(lambda: shared_weights(weight, form, integers), weight)

        def plan() -> HybridWeights:
            weights = current()
            values = bias_or_zeros(bias, channels, np.float32)
            return HybridWeights(weights.matrices, weights.sums, scales, values, low, high, weights)

        self.current = at_first_use(plan, weight, bias)
        if not is_fixed:
            self.dtype: np.dtype[Any] = np.dtype(np.float64)
        elif weight.sparsity is None and _sums_fit_float32(weight):
            self.dtype = np.dtype(np.float32)
        else:
            self.dtype = current().matrices[0].dtype


def _sums_fit_float32(weight: Tensor) -> bool:
    """Whether float32 sums are exact for all possible values of the weights."""
    largest = 1 << BITS.get(weight.type, 8) - 1
    bound = math.prod(weight.shape[1:]) * largest * _LARGEST_INPUT
    return exact_float(bound) == np.float32
