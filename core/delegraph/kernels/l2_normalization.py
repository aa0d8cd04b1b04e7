"""Kernel of L2_NORMALIZATION."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic import gemmlowp
from delegraph.arithmetic.lookup_table import every_value
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
        OperatorError: the input is a scalar, or there is a fused activation. Or a quantized output
            has another scale than 1/128, or a zero point that is not the middle of the type.

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
    return _eight_bit(context, x, y)


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


def _eight_bit(context: OpContext, x: Tensor, y: Tensor) -> Eval:
    """Return the evaluation that computes 8-bit L2_NORMALIZATION of *x* into *y*.

    Products and sums are exact in float64. So one rounding replaces the two roundings of the
    official kernels, as in :mod:`delegraph.arithmetic.requantize`. Of these, the second rounds
    halves away from zero.

    Source:
        L2Normalization, tflite/kernels/internal/optimized/optimized_ops.h (uint8) and
        internal/reference/integer_ops/l2normalization.h (int8).
    """
    differences = (every_value(x.dtype) - x.zero_point).astype(np.float64)
    # The two kernels multiply by 128 before and after the shift.
    before = 128 if y.type is TensorType.UINT8 else 1
    more_shift = 0 if y.type is TensorType.UINT8 else 7
    limits = np.iinfo(y.dtype)
    scaled, halves = (context.scratch(x.shape, np.float64) for _ in range(2))

    def run() -> None:
        values, rest = scaled.data, halves.data
        differences.take(x.data.view(np.uint8), None, values, "clip")
        squares = np.einsum("...i,...i->...", values, values)[..., np.newaxis]
        multiplier, shift = gemmlowp.inverse_sqrt(squares.astype(np.int64))
        shift += more_shift
        # Half a unit of the second rounding, of which there is none without a shift to the right.
        np.copysign(np.where(shift < 0, np.ldexp(0.5, np.minimum(shift, 0)), 0.0), values, rest)
        np.multiply(values, np.ldexp(multiplier * float(before), shift - 31), values)
        np.add(values, rest, values)
        np.add(values, 0.5 + y.zero_point, values)
        np.floor(values, values)
        y.data[...] = values.clip(limits.min, limits.max, out=values)

    return run
