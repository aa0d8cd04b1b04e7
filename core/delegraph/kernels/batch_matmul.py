"""BATCH_MATMUL: matrix products of two stacks of matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.arithmetic.exact_matmul import exact_float
from delegraph.arithmetic.fixed_point import require_multiplier
from delegraph.arithmetic.quantize_rows import quantize_rows
from delegraph.arithmetic.requantize import requantizer
from delegraph.arithmetic.weights import once_if_constant
from delegraph.errors import OperatorError
from delegraph.operators.checks import (
    option,
    require_same_type,
    require_type,
    require_zero_points,
    tensors_of,
)
from delegraph.operators.op_table import kernel
from delegraph.operators.registration import Eval, Node, OpContext, nothing
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import TensorType

Array = NDArray[Any]
Operand = Callable[[], Array]
"""Function that returns an operand as a stack of matrices ready to multiply."""

_LARGEST = {TensorType.INT8: 255.0, TensorType.INT16: 32768.0}  # without the zero point


@kernel("BATCH_MATMUL", uses_blas=True)
def prepare(context: OpContext, node: Node) -> Eval:
    """Prepare BATCH_MATMUL: products of two stacks of matrices; a stack of one is broadcast.

    Source:
        tflite/kernels/batch_matmul.cc and internal/reference/batch_matmul.h.
    """
    x, w, y = tensors_of(context, node, 2)
    require_type(x, {TensorType.FLOAT32, TensorType.INT8, TensorType.INT16})
    if w.type != TensorType.INT8:
        require_same_type(x, w)
    require_type(y, {x.type, TensorType.INT32} if x.type == TensorType.INT8 else {x.type})
    adj_x, adj_y = bool(option(node, "adj_x", False)), bool(option(node, "adj_y", False))
    context.resize_tensor(y, _output_shape(x, w, adj_x, adj_y))
    if 0 in y.shape:
        return nothing
    left, right = _matrices(x, adj_x), _matrices(w, adj_y)
    if w.type == TensorType.FLOAT32:
        return _float_eval(left, right, y)
    if x.type == TensorType.FLOAT32:
        asymmetric = bool(option(node, "asymmetric_quantize_inputs", False))
        if not adj_x and min(len(x.shape), len(w.shape)) > 2 and w.shape[-3] == 1:
            left, right = _merged_rows(left), _single(right)
        return _hybrid_eval(left, right, w, y, asymmetric)
    if y.type == TensorType.INT32:
        return _int32_eval(left, right, x, w, y)
    return _requantized_eval(context, left, right, x, w, y)


def _output_shape(x: Tensor, w: Tensor, adj_x: bool, adj_y: bool) -> tuple[int, ...]:
    """Return the shape of the product of *x* and *w*, with their stacks of matrices broadcast.

    *adj_x* and *adj_y* say whether the last two axes of *x* and of *w* are swapped before.

    Raises:
        OperatorError: a rank is not in 2..5, or the shapes do not fit.
    """
    for tensor in (x, w):
        if not 2 <= len(tensor.shape) <= 5:
            raise OperatorError(
                f"tensor {tensor.name!r} has shape {list(tensor.shape)}, expected 2 to 5 dimensions"
            )
    (rows, depth), (depth_w, columns) = x.shape[-2:], w.shape[-2:]
    if adj_x:
        rows, depth = depth, rows
    if adj_y:
        depth_w, columns = columns, depth_w
    try:
        stack = np.broadcast_shapes(x.shape[:-2], w.shape[:-2])
    except ValueError:
        stack = ()
    if depth != depth_w or len(stack) != max(len(x.shape), len(w.shape)) - 2:
        raise OperatorError(
            f"shapes {list(x.shape)} (adjoint: {adj_x}) and {list(w.shape)} (adjoint: {adj_y}) "
            "cannot be multiplied"
        )
    return (*stack, rows, columns)


def _matrices(tensor: Tensor, adjoint: bool) -> Operand:
    """Return a function that returns the matrices of *tensor*, transposed if *adjoint*."""
    if adjoint:
        return lambda: tensor.data.swapaxes(-1, -2)
    return lambda: tensor.data


def _merged_rows(operand: Operand) -> Operand:
    """Return a function that returns the matrices of *operand* with more rows.

    The last axis of the stack is merged into the rows.
    """

    def merged() -> Array:
        x = operand()
        return x.reshape(*x.shape[:-3], -1, x.shape[-1])

    return merged


def _single(operand: Operand) -> Operand:
    """Return a function that returns the matrices of *operand* without the last stack axis.

    The length of that axis is 1.
    """
    return lambda: operand().squeeze(-3)


def _float_eval(left: Operand, right: Operand, y: Tensor) -> Eval:
    def run() -> None:
        np.matmul(left(), right(), out=y.data)

    return run


def _hybrid_eval(left: Operand, right: Operand, w: Tensor, y: Tensor, asymmetric: bool) -> Eval:
    """Return the evaluation for float inputs and int8 weights *w*; it quantizes input rows first.

    With *asymmetric*, the quantized rows have zero points.

    Raises:
        OperatorError: the weights have neither one scale nor one per column.

    Source:
        EvalHybrid, tflite/kernels/batch_matmul.cc; BatchMatMul, internal/reference/batch_matmul.h.
    """
    columns = y.shape[-1]
    scales = np.zeros(1, np.float32) if w.quantization is None else w.quantization.scales
    if len(scales) not in (1, columns):
        raise OperatorError(f"weights have {len(scales)} scales, expected 1 or {columns}")

    def weights() -> tuple[Array, Array]:
        matrices = right()
        sums = _shared_rows(matrices.sum(axis=-2, dtype=np.int64), matrices.shape[:-2])
        return matrices.astype(exact_float(2.0**14 * matrices.shape[-2])), sums[..., None, :]

    bound = once_if_constant(weights, w)

    def run() -> None:
        matrices, sums = bound()
        x = left()
        rows, row_scales, zero_points = quantize_rows(
            x.reshape(math.prod(x.shape[:-1]), x.shape[-1]), asymmetric=asymmetric
        )
        acc = rows.reshape(x.shape).astype(matrices.dtype) @ matrices
        if asymmetric:
            acc = acc - _shared_rows(zero_points, x.shape[:-2])[..., None] * sums
        factor = _shared_rows(row_scales, x.shape[:-2])[..., None] * scales
        np.multiply(acc.astype(np.float32, copy=False), factor, out=y.data.reshape(acc.shape))

    return run


def _shared_rows(values: Array, stack: tuple[int, ...]) -> Array:
    """Return *values* for the rows of each matrix, ``[*stack, rows]``, as the official kernel.

    If the stack has several axes, the official kernel uses the values of matrix ``i + j`` for
    matrix ``[i, j]``. So matrices share values, and float results are inexact; the results here are
    the same.

    Args:
        values: one value for each row of the whole stack.
        stack: leading axes of the stack.
    """
    matrices = math.prod(stack)
    by_matrix = values.reshape(matrices, values.size // max(matrices, 1))
    return np.asarray(by_matrix[np.indices(stack).sum(axis=0)] if stack else by_matrix[0])


def _int32_eval(left: Operand, right: Operand, x: Tensor, w: Tensor, y: Tensor) -> Eval:
    """Return the evaluation that multiplies int8 to int32 matrices and ignores zero points."""
    for tensor in (x, w):
        require_type(tensor, {TensorType.INT8})
    exact = exact_float(2.0**14 * _depth(x, y))

    def run() -> None:
        y.data[...] = left().astype(exact) @ right().astype(exact)

    return run


def _requantized_eval(
    context: OpContext, left: Operand, right: Operand, x: Tensor, w: Tensor, y: Tensor
) -> Eval:
    """Return the evaluation that sets *y* to the product of *x* and *w*: all int8, or all int16.

    *left* and *right* are functions that return the matrices of *x* and *w*.

    Raises:
        OperatorError: the output has another type, or an int16 tensor has a zero point.
    """
    require_same_type(x, y)
    if x.type == TensorType.INT16:
        require_zero_points(x, w, y)
    scale_x, zero_x = _scale_and_zero_point(x)
    scale_w, zero_w = _scale_and_zero_point(w)
    scale_y, zero_y = _scale_and_zero_point(y)
    with np.errstate(divide="ignore", invalid="ignore"):
        multiplier = np.float64(scale_x * scale_w) / np.float64(scale_y)
    require_multiplier(float(multiplier), (x, w), y)
    largest = _LARGEST[x.type] * _LARGEST[w.type] * _depth(x, y)
    store = requantizer(
        context,
        np.array([multiplier]),
        np.zeros(1, np.int64),
        largest,
        zero_y,
        y.dtype,
        int64_sums=x.type == TensorType.INT16,
    )
    exact = exact_float(largest)
    acc = context.scratch(y.shape, exact)
    matrices = once_if_constant(lambda: np.subtract(right(), zero_w, dtype=exact), w)

    def run() -> None:
        np.matmul(np.subtract(left(), zero_x, dtype=exact), matrices(), out=acc.data)
        store(acc.data.reshape(-1, 1), y.data.reshape(-1, 1))

    return run


def _depth(x: Tensor, y: Tensor) -> int:
    """Return the number of products that are summed for each result of *x* times *y*."""
    rows = y.shape[-2]
    return math.prod(x.shape[-2:]) // rows if rows else 0


def _scale_and_zero_point(tensor: Tensor) -> tuple[np.float32, int]:
    """Return a tensor's scale and zero point; both are 0 unless it has exactly one scale.

    So scales per channel make every product 0, as in the official kernel.

    Source:
        GetLegacyQuantization, tflite/core/subgraph.cc.
    """
    if tensor.quantization is None or len(tensor.quantization.scales) != 1:
        return np.float32(0), 0
    return np.float32(tensor.scale), tensor.zero_point
