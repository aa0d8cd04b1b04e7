"""Kernel of PRELU, a leaky RELU with one slope per channel."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic.broadcast import broadcast_shape
from delegraph.arithmetic.fixed_point import multiply_by_quantized_multiplier, unlimited_multiplier
from delegraph.arithmetic.lookup_table import BinaryFunction, Integers
from delegraph.arithmetic.quantized_binary import run_integers
from delegraph.errors import OperatorError
from delegraph.operators.checks import adopt_type, require_scales, require_type, tensors_of
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

_ALPHA_TYPES = {
    TensorType.FLOAT32: TensorType.FLOAT32,
    TensorType.UINT8: TensorType.UINT8,
    TensorType.INT8: TensorType.INT8,
    TensorType.INT16: TensorType.INT8,
}


@kernel("PRELU")
def prepare_prelu(context: OpContext, node: Node) -> Eval:
    """Prepare PRELU: x, or alpha * x below 0; float32, uint8, int8 and int16.

    Alpha has the type of x, or int8 if x is int16. (The official kernel also accepts an int16
    alpha, and reads its bytes as int8.)

    Raises:
        OperatorError: the types are not supported, or alpha is larger than x in a dimension.

    Source:
        PreluEval, tflite/kernels/activations.cc.
    """
    x, alpha, y = tensors_of(context, node, 2)
    require_type(x, _ALPHA_TYPES)
    require_type(alpha, {_ALPHA_TYPES[x.type]})
    adopt_type(y, x.type)
    context.resize_tensor(y, x.shape)
    if broadcast_shape(x.shape, alpha.shape) != x.shape:
        raise OperatorError(f"alpha of shape {alpha.shape} does not broadcast to {x.shape}")
    if x.type is not TensorType.FLOAT32:
        return run_integers(context, x, alpha, y, _quantized(x, alpha, y))
    above = context.scratch(x.shape, np.bool_)

    def run() -> None:
        np.greater_equal(x.data, 0, out=above.data)
        np.multiply(x.data, alpha.data, y.data)
        np.copyto(y.data, x.data, where=above.data)  # where alpha may be NaN or infinite

    return run


def _quantized(x: Tensor, alpha: Tensor, y: Tensor) -> BinaryFunction:
    """Return the function from stored integers of *x* and *alpha* to those of *y* for PRELU.

    Source: Prelu, prelu.h.
    """
    require_scales(x, alpha, y)
    ratio = np.float32(x.scale) / np.float32(y.scale)
    sloped = np.float32(x.scale) * np.float32(alpha.scale) / np.float32(y.scale)
    identity, slope = unlimited_multiplier(float(ratio)), unlimited_multiplier(float(sloped))
    limits = np.iinfo(y.dtype)

    def function(q: Integers, a: Integers) -> Integers:
        value = q - x.zero_point
        above = multiply_by_quantized_multiplier(value, *identity)
        below = multiply_by_quantized_multiplier(value * (a - alpha.zero_point), *slope)
        result = np.where(value >= 0, above, below).astype(np.int64)
        return (result + y.zero_point).clip(limits.min, limits.max)

    return function
