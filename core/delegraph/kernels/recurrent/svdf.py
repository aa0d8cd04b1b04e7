"""SVDF: a fully connected layer over a sliding window of time, factorised by rank."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic.activation import apply_activation
from delegraph.arithmetic.fixed_point import multiply_by_quantized_multiplier, quantize_multiplier
from delegraph.arithmetic.weights import dequantized_weights, once_if_constant
from delegraph.errors import OperatorError
from delegraph.kernels.recurrent.weights import IntegerMatrix, Matrix, recurrent_weights
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.checks import (
    option,
    require_counts,
    require_one_scale,
    require_rank,
    require_same_type,
    require_scales,
    require_shape,
    require_type,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import (
    Eval,
    Node,
    OpContext,
    input_tensor,
    optional_input,
    output_tensor,
    variable_input,
)
from delegraph.operators.svdf_node import SvdfInput
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import ActivationFunctionType, TensorType

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Layer:
    """The tensors and options of an SVDF node.

    Attributes:
        x: input, ``[B, I]``.
        features: weights of each filter, ``[F, I]``.
        times: weights of each filter's last M results, ``[F, M]``.
        bias: bias, ``[F / rank]``; None if there is none.
        state: the last M results of each filter, latest last, ``[B, F * M]``.
        y: output, ``[B, F / rank]``.
        rank: number of filters that are summed for one unit.
    """

    x: Tensor
    features: Tensor
    times: Tensor
    bias: Tensor | None
    state: Tensor
    y: Tensor
    rank: int

    def push(self, latest: Array) -> Array:
        """Add the *latest* values to the state and drop the oldest; return ``[B, F, M]``."""
        window: Array = self.state.data.reshape(len(latest), *self.times.shape)
        window[:, :, :-1] = window[:, :, 1:].copy()
        window[:, :, -1] = latest
        return window

    def units(self, window: Array, times: Array) -> Array:
        """Return the outputs of all units, ``[B, F / rank]``, before bias and activation.

        An output is the sum over time and rank of the products of *window*, ``[B, F, time]``, and
        *times*, ``[F, time]``.
        """
        filters = np.einsum("bfm,fm->bf", window, times)
        y: Array = filters.reshape(*self.y.shape, self.rank).sum(axis=2)
        return y


@kernel("SVDF", uses_blas=True)
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare SVDF: one time step of a layer of filters with memory.

    Each filter keeps a window of its last M results. The output of a unit is the activation of a
    sum: the weighted windows of its filters, plus a bias.

    Source:
        tflite/kernels/svdf.cc and internal/reference/svdf.h.
    """
    require_counts(node, len(SvdfInput))
    layer = _Layer(
        input_tensor(context, node, SvdfInput.INPUT),
        input_tensor(context, node, SvdfInput.WEIGHTS_FEATURE),
        input_tensor(context, node, SvdfInput.WEIGHTS_TIME),
        optional_input(context, node, SvdfInput.BIAS),
        variable_input(context, node, SvdfInput.STATE),
        output_tensor(context, node),
        option(node, "rank", 0),
    )
    _check(layer)
    context.resize_tensor(layer.y, (layer.x.shape[0], layer.features.shape[0] // layer.rank))
    activation = option(node, "fused_activation_function", ActivationFunctionType.NONE)
    if layer.x.type == TensorType.INT8:
        return _integer_eval(layer, activation)
    return _float_eval(layer, activation, option(node, "asymmetric_quantize_inputs", False))


def _check(layer: _Layer) -> None:
    require_type(layer.x, {TensorType.FLOAT32, TensorType.INT8})
    for tensor in (layer.x, layer.features, layer.times):
        require_rank(tensor, 2)
    require_one_scale(layer.features, layer.times)
    batch, n_input = layer.x.shape
    filters = layer.features.shape[0]
    if layer.rank <= 0 or filters % layer.rank:
        raise OperatorError(f"rank is {layer.rank}, expected a divisor of {filters} filters")
    require_shape(layer.features, (filters, n_input))
    require_shape(layer.times, (filters, layer.times.shape[1]))
    require_shape(layer.state, (batch, filters * layer.times.shape[1]))
    if layer.bias is not None:
        is_integer = layer.x.type == TensorType.INT8
        require_type(layer.bias, {TensorType.INT32 if is_integer else TensorType.FLOAT32})
        require_shape(layer.bias, (filters // layer.rank,))
    require_same_type(layer.x, layer.y)
    if layer.x.type == TensorType.INT8:
        require_scales(layer.x, layer.features, layer.times, layer.state, layer.y)
        types = {TensorType.INT8}, {TensorType.INT16}, {TensorType.INT16}
    else:
        weights = {TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8}
        types = weights, {layer.features.type}, {TensorType.FLOAT32}
    for tensor, allowed in zip((layer.features, layer.times, layer.state), types, strict=True):
        require_type(tensor, allowed)


def _float_eval(layer: _Layer, activation: int, asymmetric: bool) -> Eval:
    """Return the evaluation of *layer* for float activations, and float or 8-bit weights.

    *activation* is the fused activation. *asymmetric* says whether rows that meet 8-bit weights are
    quantized with zero points.

    Source:
        EvalFloatSVDF and EvalHybridSVDF, tflite/kernels/internal/reference/svdf.h.
    """

    def weights() -> tuple[Matrix, Array]:
        features = recurrent_weights([layer.features], asymmetric=asymmetric)
        return features, dequantized_weights(layer.times)

    bound = once_if_constant(weights, layer.features, layer.times)

    def run() -> None:
        features, times = bound()
        y = layer.units(layer.push(features.product(layer.x.data)), times)
        if layer.bias is not None:
            y += layer.bias.data
        apply_activation(activation, y)
        layer.y.data[...] = y

    return run


def _integer_eval(layer: _Layer, activation: int) -> Eval:
    """Return the evaluation of *layer* for int8 activations, and int16 state and time weights.

    *activation* is the fused activation.

    Source:
        EvalIntegerSVDF, tflite/kernels/internal/reference/svdf.h.
    """
    if activation != ActivationFunctionType.RELU:
        raise OperatorError(f"activation is {activation}, expected RELU with integers")
    scale_in = layer.x.scale * layer.features.scale / layer.state.scale
    scale_out = layer.state.scale * layer.times.scale / layer.y.scale
    multiplier_in, shift_in = quantize_multiplier(scale_in)
    multiplier_out, shift_out = quantize_multiplier(scale_out)
    bound = once_if_constant(lambda: IntegerMatrix(layer.features.data), layer.features)

    def run() -> None:
        features = bound()
        sums = features.product(layer.x.data) - layer.x.zero_point * features.row_sums
        latest = multiply_by_quantized_multiplier(sums.astype(np.int64), multiplier_in, shift_in)
        window = layer.push(np.clip(latest, -32768, 32767))
        y = layer.units(window.astype(np.int64), layer.times.data.astype(np.int64))
        if layer.bias is not None:
            y += layer.bias.data
        y = multiply_by_quantized_multiplier(y.astype(np.int32), multiplier_out, shift_out)
        # The official kernel applies RELU only by an output range that starts at the zero point.
        layer.y.data[...] = np.clip(y + layer.y.zero_point, -128, 127)

    return run
