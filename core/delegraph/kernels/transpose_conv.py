"""TRANSPOSE_CONV: each input position adds a scaled filter to the output.

Source:
    Prepare, EvalFloat, EvalQuantized, EvalQuantizedPerChannel, EvalQuantizedPerChannel16x8 and
    EvalHybrid, tflite/kernels/transpose_conv.cc.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from delegraph.arithmetic.convolution_scale import (
    affine_quantization,
    is_in_scalar_tail,
    scaling_of,
)
from delegraph.arithmetic.hybrid import HybridProduct
from delegraph.arithmetic.padding import window
from delegraph.arithmetic.quantize_rows import quantize_rows
from delegraph.arithmetic.quantized_product import QuantizedProduct
from delegraph.arithmetic.weights import bias_clamp, channel_rows, once_if_constant
from delegraph.errors import OperatorError
from delegraph.lazy_dataclass import dataclass, replace
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
    optional_input,
    output_tensor,
)
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WEIGHT_TYPES = {
    TensorType.FLOAT32: (TensorType.FLOAT32, TensorType.INT8),
    TensorType.UINT8: (TensorType.UINT8,),
    TensorType.INT8: (TensorType.INT8,),
    TensorType.INT16: (TensorType.INT8,),
}
_BIAS_TYPES = {
    TensorType.FLOAT32: (TensorType.FLOAT32,),
    TensorType.UINT8: (TensorType.INT32,),
    TensorType.INT8: (TensorType.INT32,),
    TensorType.INT16: (TensorType.INT32, TensorType.INT64),
}


_VECTOR = 16
"""Number of values that the builtin uint8 kernel requantises at once.

The values that remain are rounded differently.
"""


@dataclass(frozen=True, slots=True, eq=False)
class _TransposeConv:
    """Tensors and options of a TRANSPOSE_CONV node that has been checked."""

    shape: Tensor  # [4], of the output
    weight: Tensor  # [O, KH, KW, C]
    x: Tensor  # [N, H, W, C]
    bias: Tensor | None  # [O]
    y: Tensor  # [N, OH, OW, O]
    options: Any

    @property
    def outputs(self) -> int:
        return self.weight.shape[0]

    @property
    def activation(self) -> int:
        activation: int = self.options.fused_activation_function
        return activation

    @property
    def sums_int64(self) -> bool:
        if self.bias is not None:
            return self.bias.type == TensorType.INT64
        is_short = self.options.quantized_bias_type == TensorType.INT32
        return self.x.type == TensorType.INT16 and not is_short

    def resize_output(self, context: OpContext) -> None:
        """Set the output's shape to the value of the shape input."""
        sizes = tuple(int(size) for size in self.shape.data.reshape(-1))
        if len(sizes) != 4 or sizes[0] != self.x.shape[0] or sizes[3] != self.outputs:
            raise OperatorError(
                f"output shape is {list(sizes)}, "
                f"expected [{self.x.shape[0]}, height, width, {self.outputs}]"
            )
        _, height, width, _ = self.x.shape
        down = window(self.options.padding, sizes[1], self.weight.shape[1], self.options.stride_h)
        across = window(self.options.padding, sizes[2], self.weight.shape[2], self.options.stride_w)
        if (down.output, across.output) != (height, width):
            raise OperatorError(
                f"output shape {list(sizes)} gives {down.output} x {across.output} positions, "
                f"expected the input's {height} x {width}"
            )
        context.resize_tensor(self.y, sizes)


@kernel("TRANSPOSE_CONV", uses_blas=True)
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare TRANSPOSE_CONV: each input pixel adds a scaled filter to the output.

    Supported are float, quantized (uint8; int8 and int16 activations with per-channel weights) and
    hybrid (float activations, int8 weights) nodes, with an optional bias and a fused clamp. The
    output's shape is an input, so it may be known only during invoke.

    Raises:
        OperatorError: the official kernel rejects the types, the shapes or the quantization, too.
    """
    require_counts(node, (3, 4))  # shape, filter, input and maybe bias
    conv = _check(context, node)
    if conv.shape.is_constant_or_persistent:
        conv.resize_output(context)
    else:
        context.set_dynamic(conv.y)
    if conv.x.type != TensorType.FLOAT32:
        compute = _quantized(context, conv)
    elif conv.weight.type != TensorType.FLOAT32:
        compute = _hybrid(context, conv)
    else:
        compute = _float(context, conv)
    if not conv.y.is_dynamic:
        return compute

    def resize_and_compute() -> None:
        conv.resize_output(context)
        compute()

    return resize_and_compute


def _check(context: OpContext, node: Node) -> _TransposeConv:
    shape, weight, x = (input_tensor(context, node, i) for i in range(3))
    bias, y = optional_input(context, node, 3), output_tensor(context, node)
    require_type(shape, (TensorType.INT32,))
    require_type(x, tuple(_WEIGHT_TYPES))
    require_type(weight, _WEIGHT_TYPES[x.type])
    require_type(y, (x.type,))
    if len(shape.shape) != 1 or len(x.shape) != 4 or len(weight.shape) != 4:
        raise OperatorError(
            f"output shape is {list(shape.shape)}, input {list(x.shape)} and weights "
            f"{list(weight.shape)}, expected [4], [N, H, W, C] and [O, H, W, C]"
        )
    if x.shape[3] != weight.shape[3]:
        raise OperatorError(f"input has {x.shape[3]} channels, expected {weight.shape[3]}")
    if 0 in (x.shape[3], weight.shape[0]):
        raise OperatorError(
            f"{x.shape[3]} channels become {weight.shape[0]}, expected at least one of each"
        )
    if x.type == TensorType.INT16:
        require_zero_points(x, y)
    if bias is not None:
        _check_bias(x, weight, bias)
    return _TransposeConv(shape, weight, x, bias, y, options_or_defaults(node, "TRANSPOSE_CONV"))


def _check_bias(x: Tensor, weight: Tensor, bias: Tensor) -> None:
    require_type(bias, _BIAS_TYPES[x.type])
    if bias.zero_point and x.type in (TensorType.INT8, TensorType.INT16):
        raise OperatorError(f"bias zero point is {bias.zero_point}, expected 0")
    if math.prod(bias.shape) != weight.shape[0]:
        raise OperatorError(f"bias is {list(bias.shape)}, expected [{weight.shape[0]}]")


def _float(context: OpContext, conv: _TransposeConv) -> Eval:
    scatter = _Scatter(context, conv, conv.x.dtype)
    matrix = once_if_constant(lambda: channel_rows(conv.weight.data).T, conv.weight)
    add_bias = bias_clamp(conv.bias, conv.outputs, conv.activation)

    def evaluate() -> None:
        weights, finish = matrix(), add_bias()
        for image, result in zip(conv.x.data, conv.y.data, strict=True):
            scatter(image, weights, result)
            finish(result)

    return evaluate


def _quantized(context: OpContext, conv: _TransposeConv) -> Eval:
    x, weight, bias, y = conv.x, conv.weight, conv.bias, conv.y

    def product_rounding(halves_away: NDArray[np.bool_] | bool) -> QuantizedProduct:
        scaling = scaling_of(
            x, weight, bias, y, conv.outputs, context.numerics, halves_away,
            sums_int64=conv.sums_int64,
        )  # fmt: skip
        return QuantizedProduct(
            context, x, weight, bias, y, scaling, conv.activation, is_input_centred=True
        )

    has_tail = x.type == TensorType.UINT8 and context.numerics == "builtin"
    product = product_rounding(False if has_tail else is_in_scalar_tail(conv.outputs))
    tail_product = product_rounding(True) if has_tail else product
    scatter = _Scatter(context, conv, product.dtype)
    centred = context.scratch(x.shape[1:], product.dtype)
    collect = _sums(context, conv, product.dtype)

    def requantize_tail(sums: NDArray[Any], result: NDArray[Any], count: int) -> None:
        _, requantize = tail_product.current()
        rows = -(-count // conv.outputs)
        ends = np.empty((rows, conv.outputs), y.dtype)
        requantize(sums.reshape(-1, conv.outputs)[-rows:], ends)
        result.reshape(-1)[-count:] = ends.reshape(-1)[-count:]

    def evaluate() -> None:
        (matrix,), requantize = product.current()
        sums = collect()
        total = y.data.size
        # Number of elements that vector loops compute.
        ahead = total - total % _VECTOR if has_tail else total
        for image, result in zip(x.data, y.data, strict=True):
            np.copyto(centred.data, image)
            np.subtract(centred.data, x.zero_point, out=centred.data)
            scatter(centred.data, matrix, sums)
            requantize(sums, result)
            ahead -= result.size
            if ahead < 0:
                requantize_tail(sums, result, min(-ahead, result.size))

    return evaluate


def _hybrid(context: OpContext, conv: _TransposeConv) -> Eval:
    scales = affine_quantization(conv.weight, "the weights").scales.astype(np.float32)
    if len(scales) not in (1, conv.outputs):
        raise OperatorError(f"{len(scales)} scales, expected one or {conv.outputs}")
    scales = np.broadcast_to(scales, (conv.outputs,))
    product = HybridProduct(conv.weight, conv.bias, scales, conv.activation)
    scatter = _Scatter(context, conv, product.dtype)
    centred = context.scratch(conv.x.shape[1:], product.dtype)
    collect = _sums(context, conv, product.dtype)

    def evaluate() -> None:
        weights, sums = product.current(), collect()
        for image, result in zip(conv.x.data, conv.y.data, strict=True):
            row, (scale,), (zero_point,) = quantize_rows(image.reshape(1, -1), asymmetric=True)
            np.copyto(centred.data, row.reshape(image.shape))
            np.subtract(centred.data, zero_point, out=centred.data, casting="same_kind")
            scatter(centred.data, weights.matrices[0], sums)
            weights.at(scale, 0)(sums, result)

    return evaluate


def _sums(
    context: OpContext, conv: _TransposeConv, dtype: np.dtype[Any]
) -> Callable[[], NDArray[Any]]:
    """Return a function that returns an uninitialised array for the sums of one image.

    The array is ``[OH, OW, O]`` of *dtype*; the next call may return the same memory.
    """
    if conv.y.is_dynamic:
        return lambda: np.empty(conv.y.shape[1:], dtype)
    memory = context.scratch(conv.y.shape[1:], dtype)
    return lambda: memory.data


class _Scatter:
    """Adds the contributions of all input positions to one output image, tap by tap."""

    def __init__(self, context: OpContext, conv: _TransposeConv, dtype: np.dtype[Any]) -> None:
        _, self._height, self._width, self._channels = conv.x.shape
        self._outputs, *self._kernel, _ = conv.weight.shape
        self._options = conv.options
        self._product = context.scratch((self._height, self._width, self._outputs), dtype)

    def __call__(self, image: NDArray[Any], matrix: NDArray[Any], sums: NDArray[Any]) -> None:
        """Store the sums of *image*, ``[H, W, C]``, in *sums*, ``[OH, OW, O]``.

        Args:
            image: input image, of the sums' dtype.
            matrix: weights, ``[KH * KW * C, O]``, of the same dtype.
            sums: result, contiguous; it is overwritten.
        """
        options, product = self._options, self._product.data
        height, width, _ = sums.shape
        down = _targets(options.padding, height, self._kernel[0], options.stride_h, self._height)
        across = _targets(options.padding, width, self._kernel[1], options.stride_w, self._width)
        positions = image.reshape(-1, self._channels)
        taps = iter(matrix.reshape(-1, self._channels, self._outputs))
        sums.fill(0)
        for rows, target_rows in down:
            for columns, target_columns in across:
                np.matmul(positions, next(taps), out=product.reshape(-1, self._outputs))
                sums[target_rows, target_columns] += product[rows, columns]


def _targets(
    padding: int, size: int, kernel: int, stride: int, positions: int
) -> list[tuple[slice, slice]]:
    """Return, for each tap along an axis, its input positions and the matching output positions.

    Args:
        padding: padding of the convolution from output to input, of which this is the transpose.
        size: length of the output axis.
        kernel: number of taps.
        stride: number of outputs between neighbouring input positions.
        positions: length of the input axis.
    """
    windows = replace(window(padding, size, kernel, stride), output=positions)
    return [windows.overlap(tap) for tap in range(kernel)]
