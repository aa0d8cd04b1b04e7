"""CONV_3D: a matrix product of input boxes and filters.

Source:
    tflite/kernels/conv3d.cc.
"""

from __future__ import annotations

import math

import numpy as np

from delegraph.arithmetic.padding import require_fit, window
from delegraph.arithmetic.patches import Patches
from delegraph.arithmetic.weights import bias_clamp
from delegraph.errors import OperatorError
from delegraph.operators.checks import options_or_defaults, require_counts, require_type
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
from delegraph.operators.tensor import Tensor
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
    outputs = weight.shape[4]
    strides = (options.stride_d, options.stride_h, options.stride_w)
    dilations = (options.dilation_d_factor, options.dilation_h_factor, options.dilation_w_factor)
    windows = tuple(
        window(options.padding, *axis)
        for axis in zip(x.shape[1:4], weight.shape[:3], strides, dilations, strict=True)
    )
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


def _check(x: Tensor, weight: Tensor, bias: Tensor | None, y: Tensor) -> None:
    for tensor in (x, weight, bias, y):
        if tensor is not None:
            require_type(tensor, (TensorType.FLOAT32,))
    if len(x.shape) != 5 or len(weight.shape) != 5:
        raise OperatorError(
            f"input is {list(x.shape)} and filter {list(weight.shape)}, expected 5 dimensions each"
        )
    if 0 in x.shape[1:] or 0 in weight.shape:
        raise OperatorError(f"input {list(x.shape)} or filter {list(weight.shape)} is empty")
    if x.shape[4] != weight.shape[3]:
        raise OperatorError(f"input has {x.shape[4]} channels, expected {weight.shape[3]}")
    if bias is not None and math.prod(bias.shape) != weight.shape[4]:
        raise OperatorError(f"bias is {list(bias.shape)}, expected [{weight.shape[4]}]")
