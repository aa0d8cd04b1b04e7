"""Weights, bias and output scale of a quantized matrix product, kept ready between invokes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic.accumulator_scaling import Scaling
from delegraph.arithmetic.activation import quantized_activation_range
from delegraph.arithmetic.exact_matmul import integer_weights, largest_input
from delegraph.arithmetic.requantize import Requantize
from delegraph.arithmetic.weights import bias_or_zeros, dense_values, once_if_constant
from delegraph.operators.registration import OpContext
from delegraph.operators.tensor import Tensor


class QuantizedProduct:
    """What it takes to turn ``x @ weight`` of one node into quantized outputs.

    Constant weights are transformed once, when the node is prepared; others at each invoke.

    Args:
        context: for working memory.
        x: input; its zero point is folded into the bias unless the caller subtracts it.
        weight: ``[O, ...]``, integers.
        bias: ``[O]`` or None.
        y: output.
        scaling: of the accumulators.
        activation: fused activation.
        groups: parts that the outputs are divided into.
        is_input_centred: whether the caller subtracts the zero point from the input.

    Attributes:
        current: gives one matrix ``[K, O / groups]`` for each group, and the :class:`Requantize`.
        dtype: the float type that input matrices and accumulators must have.
    """

    def __init__(
        self,
        context: OpContext,
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        y: Tensor,
        scaling: Scaling,
        activation: int,
        groups: int = 1,
        *,
        is_input_centred: bool = False,
    ) -> None:
        low, high = quantized_activation_range(activation, y)
        channels = weight.shape[0]
        largest = largest_input(x, is_centred=is_input_centred)
        is_fixed = all(t is None or t.is_constant_or_persistent for t in (weight, bias))

        def plan() -> tuple[tuple[NDArray[np.floating], ...], Requantize]:
            weights = integer_weights(
                dense_values(weight),
                largest,
                groups,
                zero_point=weight.zero_point,
                is_fixed=is_fixed,
            )
            offset = bias_or_zeros(bias, channels, np.int64)
            if not is_input_centred:
                offset = offset - x.zero_point * weights.sums
            requantize = Requantize(
                context if is_fixed else None,
                scaling,
                offset,
                weights.bounds,
                y.zero_point,
                low,
                high,
                y.dtype,
            )
            return weights.matrices, requantize

        self.current = once_if_constant(plan, weight, bias)
        self.dtype = self.current()[0][0].dtype if is_fixed else np.dtype(np.float64)
