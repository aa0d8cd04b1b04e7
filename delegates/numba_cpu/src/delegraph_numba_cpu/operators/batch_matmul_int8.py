"""BATCH_MATMUL of int8 matrices; the right ones become weights, constant ones once."""

from __future__ import annotations

import math

import numpy as np

from delegraph import Rejection, Tensor
from delegraph.arithmetic.accumulator_scaling import fixed_point_scaling
from delegraph.arithmetic.padding import Window
from delegraph.errors import OperatorError
from delegraph.schema.enums import ActivationFunctionType
from delegraph_numba_cpu.operators.batch_matmul_f32 import check_stacks
from delegraph_numba_cpu.operators.computed_int8 import (
    MATRIX_BYTES,
    computed_product,
    emit_packed,
)
from delegraph_numba_cpu.operators.packing_int8 import Product, centred
from delegraph_numba_cpu.operators.places import Part, fill, move
from delegraph_numba_cpu.operators.plans_int8 import (
    Stack,
    emit_product,
    pack_matrix,
    pack_windows,
)
from delegraph_numba_cpu.operators.registry import (
    Call,
    Operator,
    check_types,
    first_rejection,
    register_variants,
)
from delegraph_numba_cpu.program import Memory, ProgramBuilder


def check(call: Call) -> Rejection | None:
    """Let pass int8 with one scale each, which kernels compute exactly."""
    found = first_rejection(check_types(call, "INT8"), check_stacks(call))
    if found is not None:
        return found
    for tensor in (call.input(0), call.input(1), call.output()):
        quantization = tensor.quantization
        if quantization is None or len(quantization.scales) != 1 or not tensor.scale > 0:
            return Rejection("quantization", expected="one scale", tensor=tensor.index)
        if tensor.sparsity is not None:
            return Rejection("sparse", expected="dense constants", tensor=tensor.index)
    if min(len(call.input(i).shape) for i in (0, 1)) < 2:
        return Rejection("shape", expected="matrices")
    return product_of(call).rejection()


def product_of(call: Call) -> Product:
    """Return the constants of a node; of computed matrices only the scaling is known."""
    x, w, y = call.input(0), call.input(1), call.output()
    depth = x.shape[-2] if call.options.adj_x else x.shape[-1]
    columns = w.shape[-2] if call.options.adj_y else w.shape[-1]
    multiplier = np.float64(np.float32(x.scale) * np.float32(w.scale)) / np.float64(y.scale)
    scaling = fixed_point_scaling(np.full(columns, multiplier), halves_away=True)
    if _is_packed_once(w):
        weight = centred(w).reshape(w.shape[-2:])
        weight = weight if call.options.adj_y else weight.T
        return Product.of(x, weight, None, y, scaling, ActivationFunctionType.NONE)
    bias = np.zeros(columns, np.int64)
    return computed_product(x, y, scaling, depth, bias, ActivationFunctionType.NONE)


def _is_packed_once(w: Tensor) -> bool:
    return w.is_constant and math.prod(w.shape[:-2]) == 1


def lower(call: Call, builder: ProgramBuilder) -> None:
    """Emit the packing of the right matrices, and the products.

    Raises:
        OperatorError: after a resize there are more products to add up than 32 bits hold.
    """
    x, w, y = call.input(0), call.input(1), call.output()
    product = product_of(call)
    refused = product.rejection()
    if refused is not None:
        raise OperatorError(str(refused))
    depth, rows = product.weight.shape[1], y.shape[-2]
    if 0 in y.shape or depth == 0:
        fill(builder, Part.of(builder, y), np.array(y.zero_point, np.int8))
        return
    left, right = math.prod(x.shape[:-2]), math.prod(w.shape[:-2])
    images = max(left, right)
    stack = Stack(images, depth * rows if left > 1 else 0, MATRIX_BYTES)
    if right == 1:
        stack, rows = Stack(), images * rows
    one = Window(1, 1, 1, 1, 1, 0)
    windows = pack_windows(builder, depth, (one, one), product)
    if _is_packed_once(w):
        matrix = pack_matrix(builder, call, product)
    else:
        stored = builder.tensor(w.index) if call.options.adj_y else _turned(builder, w)
        matrix = emit_packed(call, builder, product, stored, right, w.zero_point)
    source = _turned(builder, x) if call.options.adj_x else builder.tensor(x.index)
    target = builder.tensor(y.index)
    emit_product(builder, source, target, windows, matrix, product, rows, True, stack)


def _turned(builder: ProgramBuilder, tensor: Tensor) -> Memory:
    """Emit the transposition of matrices; return where they will be."""
    source = Part.of(builder, tensor)
    view = source.array.swapaxes(-1, -2)
    target = Part.scratch(builder, view.shape, view.dtype)
    move(builder, source.seen(view), target)
    return target.memory


register_variants(
    "INT8",
    {
        "BATCH_MATMUL": Operator(
            check, lower, ("INT8",), ("broadcast", "computed-weights", "empty", "many-dims")
        )
    },
)
