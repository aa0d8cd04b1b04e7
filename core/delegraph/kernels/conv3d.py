"""CONV_3D, a product of input boxes and filters; CONV_3D_TRANSPOSE, one product for each tap.

Source:
    tflite/kernels/conv3d.cc and conv3d_transpose.cc.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from delegraph.arithmetic.output_shape import integers, size_output
from delegraph.arithmetic.padding import Window, require_fit, window
from delegraph.arithmetic.patches import Patches
from delegraph.arithmetic.weights import bias_clamp
from delegraph.errors import OperatorError
from delegraph.operators.checks import (
    options_or_defaults,
    require_counts,
    require_rank,
    require_shape,
    require_type,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import (
    Eval,
    Node,
    OpContext,
    input_tensor,
    nothing,
    optional_input,
    output_tensor,
)
from delegraph.operators.tensor import Shape, Tensor
from delegraph.schema.enums import TensorType


@kernel("CONV_3D", uses_blas=True)
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare CONV_3D: windows of volumes, multiplied by filters and summed; all float32.

    Raises:
        OperatorError: the types are not supported, or the shapes do not fit.
    """
    require_counts(node, (2, 3))  # input, filter and maybe bias
    x, weight = input_tensor(context, node, 0), input_tensor(context, node, 1)
    bias, y = optional_input(context, node, 2), output_tensor(context, node)
    options = options_or_defaults(node, "CONV_3D")
    _check(x, weight, bias, y)
    if 0 in x.shape[1:] or 0 in weight.shape:
        raise OperatorError(f"input {list(x.shape)} or filter {list(weight.shape)} is empty")
    *_, channels, outputs = weight.shape
    _check_channels(x, channels, bias, outputs)
    windows = _windows(options, x.shape[1:4], weight)
    require_fit(options.padding, windows)
    context.resize_tensor(y, (x.shape[0], *(w.output for w in windows), outputs))
    if 0 in y.shape:
        return nothing
    patches = Patches(context, windows, x.shape[4], 1, x.dtype, x.dtype, outputs)
    add_bias = bias_clamp(bias, outputs, options.fused_activation_function)

    def evaluate() -> None:
        matrix, finish = weight.data.reshape(-1, outputs), add_bias()
        for image, result in zip(x.data, y.data.reshape(x.shape[0], -1, outputs), strict=True):
            for tile, (part,) in patches.tiles(image):
                np.matmul(part, matrix, out=result[tile])
                finish(result[tile])

    return evaluate


@kernel("CONV_3D_TRANSPOSE", uses_blas=True)
def prepare_transpose(context: OpContext, node: Node) -> Eval:
    """Prepare CONV_3D_TRANSPOSE: each input voxel adds a scaled filter to the output; float32.

    Raises:
        OperatorError: the types are not supported, or the shapes do not fit.
    """
    require_counts(node, (3, 4))  # shape, filter, input and maybe bias
    shape_input, weight, x = (input_tensor(context, node, i) for i in range(3))
    bias, y = optional_input(context, node, 3), output_tensor(context, node)
    options = options_or_defaults(node, "CONV_3D_TRANSPOSE")
    require_type(shape_input, {TensorType.INT32})
    require_shape(shape_input, (5,))
    _check(x, weight, bias, y)
    *_, outputs, channels = weight.shape
    _check_channels(x, channels, bias, outputs)
    add_bias = bias_clamp(bias, outputs, options.fused_activation_function)

    def plan() -> tuple[Shape, Eval]:
        shape = integers(shape_input)
        windows = _transposed_windows(options, shape, weight, x)

        def evaluate() -> None:
            y.data.fill(0)
            for taps, positions, places in Window.overlaps(windows):
                y.data[places] += x.data[positions] @ weight.data[taps].T
            add_bias()(y.data.reshape(-1, outputs))

        return shape, evaluate

    return size_output(context, y, plan, shape_inputs=(shape_input,))


def _check(x: Tensor, weight: Tensor, bias: Tensor | None, y: Tensor) -> None:
    for tensor in (x, weight, bias, y):
        if tensor is not None:
            require_type(tensor, {TensorType.FLOAT32})
    for tensor in (x, weight):
        require_rank(tensor, 5)


def _check_channels(x: Tensor, channels: int, bias: Tensor | None, outputs: int) -> None:
    if x.shape[4] != channels:
        raise OperatorError(f"input has {x.shape[4]} channels, expected {channels}")
    if bias is not None and math.prod(bias.shape) != outputs:
        raise OperatorError(f"bias is {list(bias.shape)}, expected [{outputs}]")


def _windows(options: Any, sizes: Sequence[int], weight: Tensor) -> tuple[Window, ...]:
    """Return the windows of a convolution of a volume with *sizes*, one for each axis."""
    strides = (options.stride_d, options.stride_h, options.stride_w)
    dilations = (options.dilation_d_factor, options.dilation_h_factor, options.dilation_w_factor)
    return tuple(
        window(options.padding, *axis)
        for axis in zip(sizes, weight.shape[:3], strides, dilations, strict=True)
    )


def _transposed_windows(
    options: Any, shape: list[int], weight: Tensor, x: Tensor
) -> tuple[Window, ...]:
    """Return the windows, one for each axis, of the convolution that CONV_3D_TRANSPOSE transposes.

    That convolution maps an array of *shape*, the output's shape, to an array like *x*.

    Raises:
        OperatorError: that convolution does not give the input's shape.
    """
    if min(shape) < 0 or shape[0] != x.shape[0] or shape[4] != weight.shape[3]:
        raise OperatorError(
            f"output shape {shape}, expected {x.shape[0]} batches and {weight.shape[3]} channels"
        )
    windows = _windows(options, shape[1:4], weight)
    counts = tuple(w.output for w in windows)
    if counts != x.shape[1:4]:
        raise OperatorError(
            f"output shape {shape} needs an input of {list(counts)} positions, "
            f"found {list(x.shape[1:4])}"
        )
    return windows
