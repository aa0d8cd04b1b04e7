"""Kernel of SOFTMAX; code that only integer nodes need is imported on demand."""

from __future__ import annotations

import numpy as np

from delegraph.errors import OperatorError
from delegraph.operators.checks import (
    option,
    require_scales,
    require_type,
    require_zero_points,
    tensors_of,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, InPlace, Node, OpContext, nothing
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

_OUTPUT_TYPES = {
    TensorType.FLOAT32: {TensorType.FLOAT32},
    TensorType.FLOAT16: {TensorType.FLOAT16},
    TensorType.UINT8: {TensorType.UINT8, TensorType.INT16},
    TensorType.INT8: {TensorType.INT8, TensorType.INT16},
    TensorType.INT16: {TensorType.INT16},
}

_JUST_BELOW_HALF = np.nextafter(np.float32(0.5), np.float32(0))


@kernel("SOFTMAX", inplace=InPlace.INPUT_0)
def prepare_softmax(context: OpContext, node: Node) -> Eval:
    """Prepare SOFTMAX: exp(beta * x), divided by the sum along the last axis.

    Types are float32, float16, int16, and uint8 or int8, for which the output has the same type or
    int16.

    Raises:
        OperatorError: the input is a scalar, the types are not supported, or the output's scale is
            not 1/256 (for int16: 1/32768).

    Source:
        SoftmaxPrepare and SoftmaxEval, tflite/kernels/activations.cc.
    """
    x, y = tensors_of(context, node, 1)
    require_type(x, _OUTPUT_TYPES)
    require_type(y, _OUTPUT_TYPES[x.type])
    if not x.shape:
        raise OperatorError("input is a scalar, expected at least one dimension")
    context.resize_tensor(y, x.shape)
    beta = float(option(node, "beta", 0.0))
    if x.type is TensorType.FLOAT32:
        return nothing if 0 in x.shape else _float(context, x, y, beta)
    if x.type is TensorType.FLOAT16:
        return nothing if 0 in x.shape else _float16(x, y, beta)
    require_scales(x, y)
    if x.type is TensorType.INT16:
        return _int16(x, y, beta)
    if y.type is TensorType.INT8 and (y.zero_point != -128 or not _is_close(y.scale, 1 / 256)):
        raise OperatorError(
            f"output has scale {y.scale} and zero point {y.zero_point}, expected 1/256 and -128"
        )
    if 0 in x.shape:
        return nothing
    if context.numerics != "builtin":
        from delegraph.arithmetic import fixed_point_softmax

        return fixed_point_softmax.softmax(x, y, beta)
    return _eight_bit(context, x, y, beta)


def _float(context: OpContext, x: Tensor, y: Tensor, beta: float) -> Eval:
    row = context.scratch((*x.shape[:-1], 1), np.float32)
    factor = np.float32(beta)

    def run() -> None:
        out, r = y.data, row.data
        np.maximum.reduce(x.data, -1, out=r, keepdims=True)
        np.subtract(x.data, r, out)
        if factor != 1:
            np.multiply(out, factor, out)
        np.exp(out, out)
        np.add.reduce(out, -1, out=r, keepdims=True)
        np.divide(out, r, out)

    return run


def _float16(x: Tensor, y: Tensor, beta: float) -> Eval:
    def run() -> None:
        values = x.data.astype(np.float32)
        exps = np.exp((values - values.max(-1, keepdims=True)) * np.float32(beta))
        sums = exps.sum(-1, keepdims=True)
        y.data[...] = exps  # the official kernel stores them there, rounded
        y.data[...] = y.data / sums

    return run


def _eight_bit(context: OpContext, x: Tensor, y: Tensor, beta: float) -> Eval:
    """Return the evaluation that sets *y* to 8-bit SOFTMAX of ``beta * x``, by a table.

    The table has float32 exponentials.

    Source:
        Softmax<In, Out>, tflite/kernels/internal/optimized/optimized_ops.h.
    """
    from delegraph.arithmetic.lookup_table import exponentials

    table = exponentials(x.scale, beta)
    difference, row_max = context.scratch(x.shape, x.dtype), context.scratch(_row(x), x.dtype)
    exps, sums = context.scratch(x.shape, np.float32), context.scratch(x.shape, np.float32)
    scale = np.float32(y.scale)
    # uint8 is rounded by adding a half, the others exactly; results are never negative.
    half = np.float32(0.5) if y.type is TensorType.UINT8 else _JUST_BELOW_HALF
    zero_point = 0 if y.type is TensorType.UINT8 else y.zero_point
    limits = np.iinfo(y.dtype)

    def run() -> None:
        e, d = exps.data, difference.data
        np.maximum.reduce(x.data, -1, out=row_max.data, keepdims=True)
        np.subtract(x.data, row_max.data, d)
        table.take(d.view(np.uint8), None, e, "clip")
        # The float32 terms are added one by one, as in the official loop.
        np.add.accumulate(e, -1, None, sums.data)
        inverse = np.float32(1) / (sums.data[..., -1:] * scale)
        np.multiply(e, inverse, e)
        np.add(e, half, e)
        y.data[...] = (e.astype(np.int32) + zero_point).clip(limits.min, limits.max)

    return run


def _row(x: Tensor) -> tuple[int, ...]:
    return (*x.shape[:-1], 1)


def _is_close(scale: float, expected: float) -> bool:
    return abs(scale - expected) <= 0.001 * expected


def _int16(x: Tensor, y: Tensor, beta: float) -> Eval:
    """Return the evaluation that sets *y* to int16 SOFTMAX of ``beta * x``."""
    from delegraph.arithmetic.int16_softmax import int16_softmax

    require_zero_points(x, y)
    if not _is_close(y.scale, 1 / 32768):
        raise OperatorError(f"output scale is {y.scale}, expected 1/32768")
    if len(x.shape) > 4:
        raise OperatorError(f"input has {len(x.shape)} dimensions, expected 1 to 4 for INT16")
    softmax = int16_softmax(x.scale, beta)

    def run() -> None:
        y.data[...] = softmax(x.data.astype(np.int64))

    return run
