"""Kernel of L2_NORMALIZATION."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic import gemmlowp
from delegraph.arithmetic.fixed_point import multiply_by_quantized_multiplier
from delegraph.errors import OperatorError
from delegraph.kernels.elementwise.unary import unary_operands
from delegraph.operators.checks import option
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import ActivationFunctionType, TensorType

_ZERO_POINTS = {TensorType.UINT8: 128, TensorType.INT8: 0}
_EPSILON = np.float32(1e-6)


@kernel("L2_NORMALIZATION")
def prepare_l2_normalization(context: OpContext, node: Node) -> Eval:
    """Prepare L2_NORMALIZATION: vectors of the last axis, scaled to length 1.

    Types are float32, uint8 and int8.

    Raises:
        OperatorError: the input is a scalar, there is a fused activation, or a quantized output has
            not the scale 1/128 and the type's middle as zero point.

    Source:
        tflite/kernels/l2norm.cc.
    """
    x, y = unary_operands(context, node, {TensorType.FLOAT32, *_ZERO_POINTS})
    if not x.shape:
        raise OperatorError("input is a scalar, expected at least one dimension")
    activation = option(node, "fused_activation_function", ActivationFunctionType.NONE)
    if activation != ActivationFunctionType.NONE:
        raise OperatorError(f"fused activation {activation}, expected none")
    if x.type is TensorType.FLOAT32:
        return _float(context, x, y)
    if y.scale != 1 / 128 or y.zero_point != _ZERO_POINTS[y.type]:
        raise OperatorError(
            f"output has scale {y.scale} and zero point {y.zero_point}, "
            f"expected 1/128 and {_ZERO_POINTS[y.type]}"
        )
    return _eight_bit(x, y)


def _float(context: OpContext, x: Tensor, y: Tensor) -> Eval:
    if not x.shape[-1]:
        return lambda: None  # there is no element to divide
    length = context.scratch((*x.shape[:-1], 1), np.float32)

    def run() -> None:
        out, r = y.data, length.data
        np.square(x.data, out)
        np.add.accumulate(out, -1, out=out)  # element by element, as the official sum rounds
        np.sqrt(out[..., -1:], r)
        np.maximum(r, _EPSILON, out=r)
        np.divide(x.data, r, out)

    return run


def _eight_bit(x: Tensor, y: Tensor) -> Eval:
    """Return the function that computes 8-bit L2_NORMALIZATION of *x* into *y*.

    Source:
        L2Normalization, tflite/kernels/internal/optimized/optimized_ops.h (uint8) and
        internal/reference/integer_ops/l2normalization.h (int8).
    """
    x_zero, y_zero, limits = x.zero_point, y.zero_point, np.iinfo(y.dtype)

    def run() -> None:
        difference = x.data.astype(np.int64) - x_zero
        squares = np.square(difference).sum(-1, keepdims=True)
        multiplier, shift = gemmlowp.inverse_sqrt(squares)
        if y.type is TensorType.UINT8:
            result = multiply_by_quantized_multiplier(128 * difference, multiplier, shift)
        else:
            result = multiply_by_quantized_multiplier(difference, multiplier, shift + 7)
        y.data[...] = (result.astype(np.int64) + y_zero).clip(limits.min, limits.max)

    return run
