"""Weights, bias and output scale of a quantized matrix product, kept between invokes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from delegraph.arithmetic.accumulator_scaling import Scaling
from delegraph.arithmetic.activation import quantized_activation_range
from delegraph.arithmetic.exact_matmul import (
    IntegerWeights,
    centre,
    integer_weights,
    largest_input,
    shared_weights,
)
from delegraph.arithmetic.patches import split_groups
from delegraph.arithmetic.requantize import Requantize
from delegraph.arithmetic.weights import bias_or_zeros, channel_rows, dense_values
from delegraph.operators.registration import OpContext, is_only_checked
from delegraph.operators.tensor import Tensor, element_count

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MANY_ROWS = 32
"""Number of rows of a product from which on the time to convert its weights is negligible."""

_MANY_WEIGHTS = 1 << 18
"""Number of weights from which on converted weights take at least a megabyte."""

Plan: TypeAlias = "tuple[tuple[NDArray[Any], ...], Requantize]"
"""Matrix ``[K, O / groups]`` of each group, and the requantisation of the products."""


class QuantizedProduct:
    """Weights and requantisation that turn ``x @ weight`` of one node into quantized outputs.

    Constant weights are converted to matrices once, in prepare. Weights that change are converted
    at each invoke. To save memory, weights of large models, and large weights in products of many
    rows, are also converted at each invoke.

    Args:
        context: context that provides working memory.
        x: input; its zero point is folded into the bias unless the caller subtracts it.
        weight: ``[O, ...]``, integers.
        bias: ``[O]``; None if absent.
        y: output.
        scaling: scaling of the accumulators.
        activation: fused activation.
        groups: number of groups into which the outputs are divided.
        is_input_centred: whether the caller subtracts the zero point from the input.

    Attributes:
        current: function that returns one matrix ``[K, O / groups]`` for each group, and the
            :class:`Requantize`; not set if the node is only checked.
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

        def integers() -> IntegerWeights:
            values, zero_point = dense_values(weight), weight.zero_point
            return integer_weights(
                values, largest, groups, zero_point=zero_point, is_fixed=is_fixed
            )

        def plan(weights: IntegerWeights) -> Plan:
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

        self.current: Callable[[], Plan]
        self.dtype: np.dtype[Any]
        if not is_fixed:
            self.current, self.dtype = lambda: plan(integers()), np.dtype(np.float64)
            return
        if is_only_checked(context) and weight.sparsity is None:
            self.dtype = np.dtype(np.float32)
            return
        weights = shared_weights(weight, (largest, groups, weight.zero_point), integers)
        requantize = plan(weights)[1]
        self.current, self.dtype = lambda: (weights.matrices, requantize), weights.dtype
        is_stored_as_used = not weight.is_packed and weight.sparsity is None
        rows = element_count(y.shape) // max(channels, 1)
        is_worth_it = rows >= _MANY_ROWS and element_count(weight.shape) >= _MANY_WEIGHTS
        if is_stored_as_used and (is_worth_it or context.memory_limit.is_large_model):
            self.current = _anew(context, weight, self.dtype, groups, requantize)


def _anew(
    context: OpContext, weight: Tensor, dtype: np.dtype[Any], groups: int, requantize: Requantize
) -> Callable[[], Plan]:
    """Return a function that converts weights to float matrices, for each invoke anew.

    The matrices are in memory shared by all nodes. They are four times as large as the weights.
    Converting takes little time compared with a product of many rows.
    """
    rows = context.scratch((weight.shape[0], math.prod(weight.shape[1:])), dtype)

    def current() -> Plan:
        centre(channel_rows(dense_values(weight)), weight.zero_point, rows.data)
        return split_groups(rows.data.T, groups), requantize

    return current
