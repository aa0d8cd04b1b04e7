"""CONV_2D: a matrix product of input windows and filters.

Code that only integer nodes need is imported on demand.

Source:
    Prepare, EvalFloat, EvalQuantized, EvalQuantizedPerChannel, EvalQuantizedPerChannel16x8,
    EvalHybrid and EvalHybridPerChannel, tflite/kernels/conv.cc.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic.padding import Window, convolution_windows
from delegraph.arithmetic.patches import Patches, multiply_groups, split_groups
from delegraph.arithmetic.weights import bias_clamp, channel_rows, once_if_constant
from delegraph.errors import OperatorError
from delegraph.graph.dtypes import NUMPY_DTYPES
from delegraph.lazy_dataclass import dataclass
from delegraph.operators.checks import (
    options_or_defaults,
    require_counts,
    require_type,
    require_zero_points,
    tensor_types,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import (
    Eval,
    Node,
    OpContext,
    input_tensor,
    optional_input,
    output_tensor,
)
from delegraph.operators.tensor import AllocationType, Tensor
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BIAS_TYPES = {
    TensorType.FLOAT32: (TensorType.FLOAT32,),
    TensorType.UINT8: (TensorType.INT32,),
    TensorType.INT8: (TensorType.INT32,),
    TensorType.INT16: (TensorType.INT32, TensorType.INT64),
}
_FILTER_TYPES = {
    TensorType.FLOAT32: tensor_types("FLOAT32 FLOAT16 UINT8 INT8 INT4"),
    TensorType.UINT8: (TensorType.UINT8,),
    TensorType.INT8: (TensorType.INT8, TensorType.INT4),
    TensorType.INT16: (TensorType.INT8, TensorType.INT4),
}


@dataclass(frozen=True, slots=True, eq=False)
class _Conv:
    """Tensors, windows and options of a CONV_2D node that has been checked."""

    x: Tensor  # [N, H, W, C]
    weight: Tensor  # [O, KH, KW, C / groups]
    bias: Tensor  # [O]
    y: Tensor  # [N, OH, OW, O]
    windows: tuple[Window, Window]
    groups: int
    activation: int

    @property
    def outputs(self) -> int:
        return self.weight.shape[0]

    def patches(self, context: OpContext, image: np.dtype[Any], matrix: np.dtype[Any]) -> Patches:
        return Patches(
            context, self.windows, self.x.shape[3], self.groups, image, matrix, self.outputs
        )

    def images(self) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Yield each input image, ``[H, W, C]``, with its part of the output, ``[OH * OW, O]``."""
        rows = self.windows[0].output * self.windows[1].output
        results = self.y.data.reshape(self.x.shape[0], rows, self.outputs)
        return zip(self.x.data, results, strict=True)


@kernel("CONV_2D", uses_blas=True)
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare CONV_2D: windows of pictures, multiplied by filters and summed.

    Supported are float, quantized (uint8; int8 and int16 activations with per-channel weights of 8
    or 4 bits) and hybrid (float activations, integer weights) nodes, with groups, strides, dilation
    and a fused clamp. Weights of float16 are widened; the official kernel reads them as float32.

    Raises:
        OperatorError: the official kernel rejects the types, the shapes or the quantization, too.
    """
    require_counts(node, (2, 3) if context.numerics == "micro" else 3)
    conv = _check(context, node)
    sizes = (window.output for window in conv.windows)
    context.resize_tensor(conv.y, (conv.x.shape[0], *sizes, conv.outputs))
    if conv.x.type != TensorType.FLOAT32:
        return _quantized(context, conv)
    if conv.weight.type in (TensorType.FLOAT32, TensorType.FLOAT16):
        return _float(context, conv)
    return _hybrid(context, conv)


def _check(context: OpContext, node: Node) -> _Conv:
    x, weight = (input_tensor(context, node, i) for i in range(2))
    y = output_tensor(context, node)
    if len(x.shape) != 4 or len(weight.shape) != 4:
        raise OperatorError(
            f"input is {list(x.shape)} and filter {list(weight.shape)}, expected 4 dimensions each"
        )
    require_type(x, tuple(_FILTER_TYPES))
    require_type(y, (x.type,))
    require_type(weight, _FILTER_TYPES[x.type])
    bias = _bias(context, node, x, weight)
    _check_bias(x, weight, bias)
    if x.type in (TensorType.INT8, TensorType.INT16):
        from delegraph.arithmetic.convolution_scale import check_symmetric

        check_symmetric(weight)
    if x.type == TensorType.INT16:
        require_zero_points(x, y)
    options = options_or_defaults(node, "CONV_2D")
    windows = convolution_windows(options, x.shape, weight.shape[1:3])
    return _Conv(x, weight, bias, y, windows, _groups(x, weight), options.fused_activation_function)


def _bias(context: OpContext, node: Node, x: Tensor, weight: Tensor) -> Tensor:
    """Return the bias tensor; with TFLM's numerics, an absent bias is replaced by zeros."""
    bias = optional_input(context, node, 2)
    if bias is not None or context.numerics != "micro":
        return input_tensor(context, node, 2)
    type_ = _BIAS_TYPES[x.type][-1]
    zeros = np.zeros(weight.shape[0], NUMPY_DTYPES[type_])
    return Tensor(-1, type_, zeros.shape, data=zeros, allocation_type=AllocationType.MMAP_RO)


def _check_bias(x: Tensor, weight: Tensor, bias: Tensor) -> None:
    require_type(bias, _BIAS_TYPES[x.type])
    if bias.zero_point:
        raise OperatorError(f"bias zero point is {bias.zero_point}, expected 0")
    if math.prod(bias.shape) != weight.shape[0]:
        raise OperatorError(
            f"bias is {list(bias.shape)}, expected one value for each of {weight.shape[0]} filters"
        )


def _groups(x: Tensor, weight: Tensor) -> int:
    channels, per_group = x.shape[3], weight.shape[3]
    if per_group < 1 or channels % per_group:
        raise OperatorError(
            f"input has {channels} channels, expected a multiple of the filter's {per_group}"
        )
    groups = channels // per_group
    if groups < 1 or weight.shape[0] < 1 or weight.shape[0] % groups:
        raise OperatorError(f"{weight.shape[0]} filters do not divide into {groups} groups")
    return groups


def _float(context: OpContext, conv: _Conv) -> Eval:
    patches = conv.patches(context, conv.x.dtype, conv.x.dtype)

    def split() -> tuple[NDArray[Any], ...]:
        rows = channel_rows(conv.weight.data).astype(np.float32, copy=False)
        return split_groups(rows.T, conv.groups)

    matrices = once_if_constant(split, conv.weight)
    add_bias = bias_clamp(conv.bias, conv.outputs, conv.activation)

    def evaluate() -> None:
        weights, finish = matrices(), add_bias()
        for image, result in conv.images():
            for tile, parts in patches.tiles(image):
                multiply_groups(parts, weights, result[tile])
                finish(result[tile])

    return evaluate


def _quantized(context: OpContext, conv: _Conv) -> Eval:
    from delegraph.arithmetic.convolution_scale import scaling_of
    from delegraph.arithmetic.quantized_product import QuantizedProduct

    # Groups always take the reference kernel.
    scaling = scaling_of(
        conv.x,
        conv.weight,
        conv.bias,
        conv.y,
        conv.outputs,
        context.numerics,
        halves_away=conv.groups > 1,
        sums_int64=conv.bias.type == TensorType.INT64,
    )
    product = QuantizedProduct(
        context, conv.x, conv.weight, conv.bias, conv.y, scaling, conv.activation, conv.groups
    )
    patches = conv.patches(context, conv.x.dtype, product.dtype)
    sums = context.scratch((patches.tile_rows, conv.outputs), product.dtype)
    zero_point = conv.x.zero_point

    def evaluate() -> None:
        matrices, requantize = product.current()
        for image, result in conv.images():
            for tile, parts in patches.tiles(image, zero_point):
                acc = sums.data[: tile.stop - tile.start]
                multiply_groups(parts, matrices, acc)
                requantize(acc, result[tile])

    return evaluate


def _hybrid(context: OpContext, conv: _Conv) -> Eval:
    from delegraph.arithmetic.convolution_scale import affine_quantization
    from delegraph.arithmetic.hybrid import HybridProduct
    from delegraph.arithmetic.quantize_rows import quantize_rows

    scales = affine_quantization(conv.weight, "the filter").scales.astype(np.float32)
    if conv.groups > 1 and len(scales) != conv.outputs:
        raise OperatorError(f"filter has {len(scales)} scales, expected {conv.outputs} with groups")
    is_per_channel = bool(np.any(scales != scales[0])) or conv.groups > 1
    if is_per_channel and len(scales) not in (1, conv.outputs):
        raise OperatorError(f"filter has {len(scales)} scales, expected 1 or {conv.outputs}")
    scales = np.broadcast_to(scales if is_per_channel else scales[:1], (conv.outputs,))
    product = HybridProduct(conv.weight, conv.bias, scales, conv.activation, conv.groups)
    patches = conv.patches(context, np.dtype(np.int8), product.dtype)
    sums = context.scratch((patches.tile_rows, conv.outputs), product.dtype)

    def evaluate() -> None:
        weights = product.current()
        for image, result in conv.images():
            row, (scale,), (zero_point,) = quantize_rows(
                image.reshape(1, -1), asymmetric=is_per_channel
            )
            finish = weights.at(scale, zero_point)
            for tile, parts in patches.tiles(row.reshape(image.shape), zero_point):
                acc = sums.data[: tile.stop - tile.start]
                multiply_groups(parts, weights.matrices, acc)
                finish(acc, result[tile])

    return evaluate
