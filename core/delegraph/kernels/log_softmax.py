"""Kernel of LOG_SOFTMAX: the logarithm of SOFTMAX over the last axis."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic import fixed_point_softmax
from delegraph.arithmetic.lookup_table import exponentials
from delegraph.errors import OperatorError
from delegraph.kernels.elementwise.unary import unary_operands
from delegraph.operators.checks import require_scales
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, nothing
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

_ZERO_POINTS = {TensorType.UINT8: 255, TensorType.INT8: 127}


@kernel("LOG_SOFTMAX")
def prepare_log_softmax(context: OpContext, node: Node) -> Eval:
    """Prepare LOG_SOFTMAX: logarithms of the softmax along the last axis, on 8 bits and float32.

    Raises:
        OperatorError: the input is a scalar, or a quantized output has not the scale 16/256 and the
            type's largest value as zero point.

    Source:
        LogSoftmaxPrepare and LogSoftmaxEval, tflite/kernels/activations.cc.
    """
    x, y = unary_operands(context, node, {TensorType.FLOAT32, *_ZERO_POINTS})
    if not x.shape:
        raise OperatorError("input is a scalar, expected at least one dimension")
    if x.type is TensorType.FLOAT32:
        return nothing if 0 in x.shape else _float(context, x, y)
    expected = _ZERO_POINTS[y.type]
    if y.scale != 16 / 256 or y.zero_point != expected:
        raise OperatorError(
            f"output has scale {y.scale} and zero point {y.zero_point}, "
            f"expected 1/16 and {expected}"
        )
    require_scales(x)
    if 0 in x.shape:
        return nothing
    if context.numerics != "builtin":
        return fixed_point_softmax.log_softmax(x, y)
    return _eight_bit(context, x, y)


def _float(context: OpContext, x: Tensor, y: Tensor) -> Eval:
    row = context.scratch((*x.shape[:-1], 1), np.float32)
    exps = context.scratch(x.shape, np.float32)

    def run() -> None:
        out, r, e = y.data, row.data, exps.data
        np.maximum.reduce(x.data, -1, out=r, keepdims=True)
        np.subtract(x.data, r, out)
        np.exp(out, e)
        np.add.reduce(e, -1, out=r, keepdims=True)
        np.log(r, r)
        np.subtract(out, r, out)

    return run


def _eight_bit(context: OpContext, x: Tensor, y: Tensor) -> Eval:
    """Return the evaluation that computes 8-bit LOG_SOFTMAX of *x* into *y*.

    Source:
        LogSoftmax<T>, tflite/kernels/internal/optimized/optimized_ops.h.
    """
    table = exponentials(x.scale, 1.0)
    length = x.shape[-1]
    rows = math.prod(x.shape[:-1])
    difference, row_max = (
        context.scratch(x.shape, x.dtype),
        context.scratch((*x.shape[:-1], 1), x.dtype),
    )
    exps = context.scratch((length, rows), np.float32)
    input_scale, output_scale = np.float32(x.scale), np.float32(y.scale)
    ratio, zero_point = input_scale / output_scale, np.float32(y.zero_point)
    limits = np.iinfo(y.dtype)

    def run() -> None:
        np.maximum.reduce(x.data, -1, out=row_max.data, keepdims=True)
        np.subtract(x.data, row_max.data, difference.data)
        columns = difference.data.view(np.uint8).reshape(rows, length).T
        table.take(np.ascontiguousarray(columns), None, exps.data, "clip")
        total = _sums_in_order(exps.data).reshape(row_max.data.shape)
        log_total = np.log(total.astype(np.float64)).astype(np.float32)
        offset = (input_scale * row_max.data + log_total) / output_scale
        e = exps.data.reshape(x.shape)
        np.multiply(x.data, ratio, e)
        np.subtract(e, offset, e)
        y.data[...] = (np.rint(e, e) + zero_point).clip(limits.min, limits.max)

    return run


def _sums_in_order(columns: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the sum of each column of ``[L, N], float32``, added from top to bottom.

    The official loops add in this order. NumPy does so for whole rows, but adds in pairs if a row
    has a single element.
    """
    if columns.shape[1] == 1:
        last: NDArray[np.float32] = np.add.accumulate(columns, 0)[-1]
        return last
    total: NDArray[np.float32] = np.add.reduce(columns, 0)
    return total
