"""Kernel of DEQUANTIZE: converts stored integers, or float16, to float32."""

from __future__ import annotations

import math

import numpy as np

from delegraph.arithmetic.channelwise import channel_parameters
from delegraph.arithmetic.convolution_scale import affine_quantization
from delegraph.arithmetic.elements import values_of
from delegraph.arithmetic.output_shape import are_known, fold_output
from delegraph.errors import OperatorError
from delegraph.operators.checks import (
    adopt_type,
    require_type,
    require_zero_points,
    tensor_types,
    tensors_of,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

_LANES = 8  # lanes of the official vector loop; the other elements follow the formula
_TYPES = tensor_types("INT2 INT4 UINT4 UINT8 INT8 INT16 FLOAT16")


@kernel("DEQUANTIZE")
def prepare_dequantize(context: OpContext, node: Node) -> Eval:
    """Prepare DEQUANTIZE: ``scale * (q - zero_point)`` of integers, or float16 as float32.

    Supported are 2-, 4- and 8-bit integers with scales per tensor, channel or block, and int16
    without zero point. For scales per block, the official kernel returns zeros. Results that depend
    only on constants are computed once, in prepare.

    Source:
        tflite/kernels/dequantize.{cc,h}.
    """
    x, y = tensors_of(context, node, 1)
    require_type(x, _TYPES)
    adopt_type(y, TensorType.FLOAT32)
    context.resize_tensor(y, x.shape)
    if x.type is TensorType.INT16:
        require_zero_points(x)
    run = dequantization(x, y)
    return fold_output(context, y, lambda: (x.shape, run)) if are_known((x,)) else run


def dequantization(x: Tensor, y: Tensor) -> Eval:
    """Return the evaluation that stores the real values of *x* in *y*, float32."""
    if x.type is TensorType.FLOAT16:
        return _widen(x, y)
    has_blocks = x.quantization is not None and x.quantization.block_size > 0
    return _scale_blocks(x, y) if has_blocks else _scale(x, y)


def _widen(x: Tensor, y: Tensor) -> Eval:
    def run() -> None:
        np.copyto(y.data, x.data)

    return run


def _scale_blocks(x: Tensor, y: Tensor) -> Eval:
    quantization = affine_quantization(x, "the input")
    size, scales = quantization.block_size, quantization.scales.astype(np.float32)
    if not x.shape or x.shape[-1] % size or len(scales) * size != math.prod(x.shape):
        raise OperatorError(
            f"tensor {x.name!r} has {len(scales)} scales of {size} elements each, expected blocks "
            f"of the rows of {list(x.shape)}"
        )

    def run() -> None:
        out = y.data.reshape(-1, size)
        np.multiply(values_of(x).reshape(-1, size), scales[:, np.newaxis], out, dtype=np.float32)

    return run


def _scale(x: Tensor, y: Tensor) -> Eval:
    scale, zero_point = channel_parameters(x)
    if scale.ndim and any(n not in (1, m) for n, m in zip(scale.shape, x.shape, strict=True)):
        raise OperatorError(
            f"tensor {x.name!r} has {scale.size} scales, expected one for each channel of "
            f"{list(x.shape)}"
        )
    offset = -zero_point.astype(np.float32) * scale

    def run_channels() -> None:
        out = y.data
        np.subtract(values_of(x), zero_point, out, dtype=np.float32)
        np.multiply(out, scale, out)

    rest = math.prod(x.shape) % _LANES if x.dtype.itemsize == 1 and not x.is_packed else 0

    def run() -> None:
        out = y.data
        np.multiply(values_of(x), scale, out, dtype=np.float32)
        np.add(out, offset, out)
        if rest:
            centred = np.subtract(x.data.reshape(-1)[-rest:], zero_point, dtype=np.float32)
            np.multiply(centred, scale, out.reshape(-1)[-rest:])

    return run_channels if scale.ndim else run
