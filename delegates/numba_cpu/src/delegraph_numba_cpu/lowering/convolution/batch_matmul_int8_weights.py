"""BATCH_MATMUL of float32 or int16 matrices and a single constant int8 matrix of weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Rejection, Tensor
from delegraph.arithmetic import Window
from delegraph.errors import OperatorError
from delegraph_numba_cpu.lowering.checks import check_one_scale, check_type, first_rejection
from delegraph_numba_cpu.lowering.convolution import conv_hybrid, conv_int16
from delegraph_numba_cpu.lowering.convolution.conv_f32 import UNLIMITED
from delegraph_numba_cpu.lowering.convolution.conv_windows import ONE
from delegraph_numba_cpu.lowering.registry import Call
from delegraph_numba_cpu.program.builder import ProgramBuilder

_RESULT_BITS = 31


def check_matrix(call: Call) -> Rejection | None:
    """Return a rejection unless the right operand is a constant int8 matrix.

    The left operand must be stored row by row.
    """
    x, w = call.input(0), call.input(1)
    if call.options.adj_x:
        return Rejection("adj_x", actual=True, expected=False)
    if not w.is_constant or w.sparsity is not None:
        return Rejection("computed-weights", expected="a dense constant", tensor=w.index)
    if len(w.shape) < 2 or 0 in w.shape or math.prod(w.shape[:-2]) != 1 or len(x.shape) == 1:
        return Rejection("shape", actual=w.shape, expected="one matrix", tensor=w.index)
    return check_type(w, "INT8")


def matrix_of(call: Call) -> NDArray[np.int8]:
    """Return the right matrix as weights, ``[O, K]``."""
    w = call.input(1)
    values: NDArray[Any] = w.data.reshape(w.shape[-2:])
    return values if call.options.adj_y else np.ascontiguousarray(values.T)


def check_hybrid(call: Call) -> Rejection | None:
    """Return a rejection unless x and y are float32, with one scale or one per column."""
    x, y = call.input(0), call.output()
    found = first_rejection(
        check_matrix(call), check_type(x, "FLOAT32"), check_type(y, "FLOAT32"), check_stack(call)
    )
    if found is not None:
        return found
    values, quantization = matrix_of(call), call.input(1).quantization
    if (
        quantization is None
        or len(quantization.scales) not in (1, len(values))
        or quantization.block_size
    ):
        return Rejection("quantization", expected="one scale, or one a column")
    if not conv_hybrid.have_short_sums(values):
        return Rejection("depth", actual=values.shape, expected="sums of 32 bits")
    return None


def check_stack(call: Call) -> Rejection | None:
    """Return a rejection unless at most one axis holds batches."""
    x, w = call.input(0).shape, call.input(1).shape
    axes = x[:-2]
    if min(len(x), len(w)) > 2:
        axes = axes[:-1]  # the matrices are then rows of one matrix
    if 0 not in axes and sum(size > 1 for size in axes) > 1:
        return Rejection("broadcast", actual=list(axes), expected="one axis of matrices")
    return None


def lower_hybrid(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a product of float32 rows and int8 weights; each row has its own scale.

    Raises:
        OperatorError: after a resize there are stacks along several axes.
    """
    refused = check_stack(call)
    if refused is not None:
        raise OperatorError(str(refused))
    w, y = call.input(1), call.output()
    if 0 in y.shape:
        return
    values = matrix_of(call)
    outputs, depth = values.shape
    assert w.quantization is not None
    scales = np.broadcast_to(w.quantization.scales.astype(np.float32), (outputs,))
    zeros = np.zeros(outputs, np.float32)
    low, high = UNLIMITED
    packed = conv_hybrid.packed_weights(builder, y.index, values, scales, zeros)
    sizes = (math.prod(y.shape) // outputs, depth, outputs)
    target = builder.tensor(y.index)
    conv_hybrid.emit_rows(call, builder, sizes, y=target, low=low, high=high, **packed)


def check_int16(call: Call) -> Rejection | None:
    """Return a rejection unless activations are int16 and sums fit 32 bits."""
    x, w, y = call.input(0), call.input(1), call.output()
    found = first_rejection(
        check_matrix(call),
        check_type(x, "INT16"),
        check_type(y, "INT16"),
        *(check_one_scale(tensor) for tensor in (x, y)),
        *(_check_zero_point(tensor) for tensor in (x, w, y)),
    )
    if found is not None:
        return found
    product = _product_of(call)
    largest = product.largest * _multiplier(call)
    if not largest < 1 << _RESULT_BITS:
        return Rejection("multiplier", actual=largest, expected="results of 32 bits")
    return product.rejection()


def _check_zero_point(tensor: Tensor) -> Rejection | None:
    if tensor.zero_point:
        return Rejection("zero-point", actual=tensor.zero_point, expected=0, tensor=tensor.index)
    return None


def _multiplier(call: Call) -> float:
    x, w, y = call.input(0), call.input(1), call.output()
    # Official kernels ignore scales of columns, and multiply by 0.
    scale = w.scale if check_one_scale(w) is None else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        product = np.float32(x.scale) * np.float32(scale)
        return float(np.float64(product) / np.float64(np.float32(y.scale)))


def _product_of(call: Call) -> conv_int16.Product:
    weight = matrix_of(call).astype(np.int16)
    outputs = len(weight)
    scaling = conv_int16.int64_scaling(np.full(outputs, _multiplier(call)))
    limits = -(1 << 15), (1 << 15) - 1
    return conv_int16.Product(weight, np.zeros(outputs, np.int64), scaling, limits)


def lower_int16(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program a product of int16 rows and int8 weights; each row counts as a pixel."""
    product = _product_of(call)
    outputs, depth = product.weight.shape
    rows = math.prod(call.output().shape) // outputs
    windows = ONE, Window(rows, 1, 1, 1, rows, 0)
    conv_int16.emit_product(call, builder, product, windows, depth)
