"""DEPTHWISE_CONV_2D: a convolution in which each input channel has its own filters.

Code that only integer nodes need is imported on demand.

Source:
    Prepare, EvalFloat, EvalQuantized, EvalQuantizedPerChannel, EvalQuantizedPerChannel16x8 and
    EvalHybridPerChannel, tflite/kernels/depthwise_conv.cc.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic.activation import float_activation_range, quantized_activation_range
from delegraph.arithmetic.depthwise_taps import DepthwiseTaps
from delegraph.arithmetic.padding import Window, convolution_windows
from delegraph.arithmetic.weights import (
    bias_clamp,
    bias_or_zeros,
    centred_integers,
    dense_values,
    once_if_constant,
)
from delegraph.errors import OperatorError
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.checks import (
    options_or_defaults,
    require_counts,
    require_type,
    require_zero_points,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import (
    Eval,
    Node,
    OpContext,
    input_tensor,
    is_only_checked,
    nothing,
    output_tensor,
)
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from delegraph.arithmetic.hybrid import HybridWeights
    from delegraph.arithmetic.requantize import Requantize

_FILTER_TYPES = {
    TensorType.FLOAT32: (TensorType.FLOAT32, TensorType.INT8),
    TensorType.UINT8: (TensorType.UINT8,),
    TensorType.INT8: (TensorType.INT8, TensorType.INT4),
    TensorType.INT16: (TensorType.INT8,),
}
_BIAS_TYPES = {
    TensorType.FLOAT32: (TensorType.FLOAT32,),
    TensorType.UINT8: (TensorType.INT32,),
    TensorType.INT8: (TensorType.INT32,),
    TensorType.INT16: (TensorType.INT64,),
}


@dataclass(frozen=True, slots=True, eq=False)
class _Depthwise:
    """Tensors, windows and options of a DEPTHWISE_CONV_2D node that has been checked."""

    x: Tensor  # [N, H, W, C]
    weight: Tensor  # [1, KH, KW, O]
    bias: Tensor | None  # [O]
    y: Tensor  # [N, OH, OW, O]
    windows: tuple[Window, Window]
    activation: int

    @property
    def outputs(self) -> int:
        return self.weight.shape[3]

    @property
    def is_fixed(self) -> bool:
        return all(t is None or t.is_constant_or_persistent for t in (self.weight, self.bias))

    def taps(self, context: OpContext, dtype: np.dtype[Any]) -> DepthwiseTaps:
        channels = self.x.shape[3]
        return DepthwiseTaps(context, self.windows, channels, self.outputs // channels, dtype)

    def images(self) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield each input image, ``[H, W, C]``, with its part of the output, ``[OH, OW * O]``."""
        down, across = self.windows
        shape = (self.x.shape[0], down.output, across.output * self.outputs)
        return zip(self.x.data, self.y.data.reshape(shape), strict=True)


@kernel("DEPTHWISE_CONV_2D", uses_blas=True)
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare DEPTHWISE_CONV_2D: a convolution of each channel by its own filters.

    Supported are float, quantized (uint8; int8 and int16 activations with per-channel weights) and
    hybrid (float activations, int8 weights) nodes, with strides, dilation, depth multiplier and a
    fused clamp.

    Raises:
        OperatorError: the official kernel rejects the types, the shapes or the quantization, too.
    """
    require_counts(node, (2, 3))  # input, filter and maybe bias
    conv = _check(context, node)
    sizes = (window.output for window in conv.windows)
    context.resize_tensor(conv.y, (conv.x.shape[0], *sizes, conv.outputs))
    if conv.x.type != TensorType.FLOAT32:
        return _quantized(context, conv)
    if conv.weight.type != TensorType.FLOAT32:
        return _hybrid(context, conv)
    return _float(context, conv)


def _check(context: OpContext, node: Node) -> _Depthwise:
    x, weight = input_tensor(context, node, 0), input_tensor(context, node, 1)
    bias = input_tensor(context, node, 2) if len(node.inputs) == 3 else None
    y = output_tensor(context, node)
    if len(x.shape) != 4 or len(weight.shape) != 4 or weight.shape[0] != 1:
        raise OperatorError(
            f"input is {list(x.shape)} and filter {list(weight.shape)}, "
            "expected [N, H, W, C] and [1, H, W, O]"
        )
    require_type(x, tuple(_FILTER_TYPES))
    require_type(y, (x.type,))
    require_type(weight, _FILTER_TYPES[x.type])
    if 0 in (x.shape[3], weight.shape[3]) or weight.shape[3] % x.shape[3]:
        raise OperatorError(
            f"filter has {weight.shape[3]} outputs, expected a multiple of {x.shape[3]} channels"
        )
    if x.type == TensorType.INT16:
        require_zero_points(x, y)
    if bias is not None:
        _check_bias(x, weight, bias)
    options = options_or_defaults(node, "DEPTHWISE_CONV_2D")
    windows = convolution_windows(options, x.shape, weight.shape[1:3])
    return _Depthwise(x, weight, bias, y, windows, options.fused_activation_function)


def _check_bias(x: Tensor, weight: Tensor, bias: Tensor) -> None:
    require_type(bias, _BIAS_TYPES[x.type])
    if bias.zero_point:
        raise OperatorError(f"bias zero point is {bias.zero_point}, expected 0")
    if bias.shape != weight.shape[3:]:
        raise OperatorError(f"bias is {list(bias.shape)}, expected [{weight.shape[3]}]")


def _float(context: OpContext, conv: _Depthwise) -> Eval:
    taps = conv.taps(context, conv.x.dtype)
    weights = once_if_constant(lambda: taps.arrange(conv.weight.data[0]), conv.weight)
    add_bias = bias_clamp(conv.bias, conv.outputs, conv.activation)

    def evaluate() -> None:
        current, finish = weights(), add_bias()
        for image, result in conv.images():
            for rows, sums in taps.tiles(image, current):
                np.copyto(result[rows], sums)
                finish(result[rows])

    return evaluate


def _quantized(context: OpContext, conv: _Depthwise) -> Eval:
    from delegraph.arithmetic.convolution_scale import is_in_scalar_tail, scaling_of
    from delegraph.arithmetic.exact_matmul import column_bounds, exact_float, largest_input
    from delegraph.arithmetic.requantize import Requantize

    x, y = conv.x, conv.y
    away = is_in_scalar_tail(conv.outputs) if x.type == TensorType.INT8 else True
    scaling = scaling_of(
        x,
        conv.weight,
        conv.bias,
        y,
        conv.outputs,
        context.numerics,
        halves_away=away,
        sums_int64=x.type == TensorType.INT16,
    )
    low, high = quantized_activation_range(conv.activation, y)
    if is_only_checked(context) and conv.is_fixed and conv.weight.sparsity is None:
        conv.taps(context, np.dtype(np.float32))
        return nothing
    largest, dtype = largest_input(x), np.dtype(np.float64)
    if conv.is_fixed:
        dtype = exact_float(column_bounds(centred_integers(conv.weight), largest).max(initial=0))
    taps = conv.taps(context, dtype)

    def plan() -> tuple[list[NDArray[Any]], Requantize]:
        weight = centred_integers(conv.weight)[0]
        sums = weight.sum(axis=(0, 1), dtype=np.int64)
        offset = bias_or_zeros(conv.bias, conv.outputs, np.int64) - x.zero_point * sums
        requantize = Requantize(
            context if conv.is_fixed else None,
            scaling,
            offset,
            column_bounds(weight, largest),
            y.zero_point,
            low,
            high,
            y.dtype,
        )
        return taps.arrange(weight.astype(dtype)), requantize

    planned = once_if_constant(plan, conv.weight, conv.bias)

    def evaluate() -> None:
        weights, requantize = planned()
        for image, result in conv.images():
            for rows, sums in taps.tiles(image, weights, x.zero_point):
                requantize(sums.reshape(-1, conv.outputs), result[rows].reshape(-1, conv.outputs))

    return evaluate


def _hybrid(context: OpContext, conv: _Depthwise) -> Eval:
    from delegraph.arithmetic.convolution_scale import affine_quantization
    from delegraph.arithmetic.hybrid import HybridWeights
    from delegraph.arithmetic.quantize_rows import quantize_rows

    quantization = affine_quantization(conv.weight, "the filter")
    count = len(quantization.scales)
    expected = conv.weight.shape[quantization.quantized_dimension]
    if count != expected or count not in (1, conv.outputs):
        raise OperatorError(f"filter has {count} scales, expected one for each output channel")
    scales = np.broadcast_to(quantization.scales.astype(np.float32), (conv.outputs,))
    clamp_range = float_activation_range(conv.activation)
    taps = conv.taps(context, conv.x.dtype)

    def plan() -> HybridWeights:
        weight = dense_values(conv.weight)[0]
        bias = bias_or_zeros(conv.bias, conv.outputs, np.float32)
        arranged = tuple(taps.arrange(weight.astype(np.float32)))
        sums = weight.sum(axis=(0, 1), dtype=np.int64)
        return HybridWeights(arranged, sums, scales, bias, *clamp_range)

    planned = once_if_constant(plan, conv.weight, conv.bias)

    def evaluate() -> None:
        weights = planned()
        for image, result in conv.images():
            row, (scale,), (zero_point,) = quantize_rows(image.reshape(1, -1), asymmetric=True)
            quantized, finish = row.reshape(image.shape), weights.at(scale, zero_point)
            for rows, sums in taps.tiles(quantized, list(weights.matrices), zero_point):
                finish(sums, result[rows])

    return evaluate
