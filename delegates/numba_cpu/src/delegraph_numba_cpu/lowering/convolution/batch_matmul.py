"""BATCH_MATMUL; right matrices are packed like weights, constant matrices only once."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from delegraph import Rejection, Tensor
from delegraph.arithmetic import fixed_point_scaling
from delegraph.errors import OperatorError
from delegraph.schema.enums import ActivationFunctionType
from delegraph_numba_cpu.instructions import batch_matmul_f32
from delegraph_numba_cpu.lowering.checks import check_types
from delegraph_numba_cpu.lowering.convolution import batch_matmul_int8_weights as by_bytes
from delegraph_numba_cpu.lowering.convolution import (
    conv_f32,
    conv_f32_packing,
    conv_int8,
    conv_int8_computed_weights,
)
from delegraph_numba_cpu.lowering.convolution.conv_f32_windows import Windows
from delegraph_numba_cpu.lowering.convolution.conv_hybrid import by_weights
from delegraph_numba_cpu.lowering.convolution.conv_int8_constants import Product, computed_product
from delegraph_numba_cpu.lowering.convolution.conv_int8_packing import centred
from delegraph_numba_cpu.lowering.convolution.conv_windows import ONE_PIXEL
from delegraph_numba_cpu.lowering.moves.moves import Part, fill, move, tiles_for
from delegraph_numba_cpu.lowering.registry import Call, Operator, register_variants
from delegraph_numba_cpu.program.builder import Memory, ProgramBuilder
from delegraph_numba_cpu.program.shared_constants import constant_key

COLUMNS_A_TILE = 64
"""Least number of columns of a tile, for which a tile is worth its overhead."""


def check_f32(call: Call) -> Rejection | None:
    """Return a rejection unless all tensors are float32."""
    return check_types(call, "FLOAT32")


class Stack(NamedTuple):
    """Matrices of one operand: a single matrix for all products, or one matrix per product.

    Attributes:
        part: elements of all matrices.
        matrices: number of matrices.
    """

    part: Part
    matrices: int


def _stack(builder: ProgramBuilder, tensor: Tensor, y: Tensor) -> Stack:
    """Return the matrices of the operand *tensor*, for products whose results are in *y*.

    There is one matrix for each product, or a single one for all. If the operand has another
    number of matrices, a kernel call is added that copies them once for each product.
    """
    part, count = Part.of(builder, tensor), math.prod(y.shape[:-2])
    if math.prod(tensor.shape[:-2]) in (1, count):
        return Stack(part, math.prod(tensor.shape[:-2]))
    target = Part.scratch(builder, (*y.shape[:-2], *tensor.shape[-2:]), tensor.dtype)
    move(builder, part.seen(np.broadcast_to(part.array, target.array.shape)), target)
    return Stack(target, count)


def lower_f32(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel calls of a float32 BATCH_MATMUL: packing, then the products."""
    x, w, y = call.input(0), call.input(1), call.output()
    rows, columns = y.shape[-2:]
    depth = x.shape[-2] if call.options.adj_x else x.shape[-1]
    if 0 in y.shape or depth == 0:
        fill(builder, Part.of(builder, y), np.zeros((), np.float32))
        return
    left, right = _stack(builder, x, y), _stack(builder, w, y)
    images = math.prod(y.shape[:-2])
    if right.matrices == 1:
        images, rows = 1, images * rows
    is_by_row = rows == 1 or not call.options.adj_x
    if is_by_row and rows <= few_rows(builder) and not is_packed_once(w):
        _emit_rows(call, builder, left, right, (images, rows, depth, columns))
        return
    size = conv_f32_packing.packed_bytes(depth, columns, builder.level.vector_bytes // 4)
    conv_f32.emit_products(
        builder,
        Windows.of_rows(rows, depth, columns, images),
        (1, 1),
        x=_left(call, builder, left, depth),
        y=builder.tensor(y.index),
        weight=_right(call, builder, right, depth, columns),
        weight_image=size if right.matrices > 1 else 0,
        in_image=4 * depth * rows if left.matrices > 1 else 0,
    )


def few_rows(builder: ProgramBuilder) -> int:
    """Largest number of rows of a left matrix for which right matrices are read unpacked.

    Each right matrix is then read once or a few times, so packing would take longer than it saves.
    The limit grows with the size of the registers.
    """
    return builder.level.vector_bytes // 8


def _emit_rows(
    call: Call, builder: ProgramBuilder, left: Stack, right: Stack, sizes: tuple[int, int, int, int]
) -> None:
    """Add to the program a kernel call that multiplies few rows by matrices that are not packed.

    It is used where a left matrix has few rows, as in the attention of a decoder. Packing would
    then take longer than the products. *sizes* has the number of products, the rows of a left
    matrix, their depth, and the columns of a right matrix.
    """
    images, rows, depth, columns = sizes
    builder.emit(
        batch_matmul_f32.DOTS if call.options.adj_y else batch_matmul_f32.SUMS,
        tiles_for(builder, 4 * depth * columns * images, images * -(-columns // COLUMNS_A_TILE)),
        x=left.part.memory,
        y=builder.tensor(call.output().index),
        weights=right.part.memory,
        x_image=4 * rows * depth if left.matrices > 1 else 0,
        weights_image=4 * depth * columns if right.matrices > 1 else 0,
        images=images,
        rows=rows,
        depth=depth,
        columns=columns,
    )


def _left(call: Call, builder: ProgramBuilder, left: Stack, depth: int) -> Memory:
    """Return the memory of left matrices, whose rows of *depth* values are contiguous.

    If they are stored column by column, a kernel call that transposes them is added to the program.
    """
    source = left.part.memory
    if not call.options.adj_x:
        return source
    rows = call.input(0).shape[-1]
    target = builder.scratch(4 * rows * depth * left.matrices)
    conv_f32_packing.emit_pack(
        builder,
        source=source,
        target=target,
        images=left.matrices,
        source_image=4 * rows * depth,
        target_image=4 * rows * depth,
        rows=rows,
        columns=depth,
        down=4,
        across=4 * rows,
        width=depth,
        last_width=depth,
        has_bias=0,
        bias=0,
    )
    return target


def _right(call: Call, builder: ProgramBuilder, right: Stack, depth: int, columns: int) -> Memory:
    """Return the memory of right matrices ``[depth, columns]``, packed in blocks of columns.

    A constant matrix is packed now; for others, a kernel call that packs them is added.
    """
    w, lanes = call.input(1), builder.level.vector_bytes // 4
    is_transposed = bool(call.options.adj_y)
    if not is_packed_once(w):
        sizes = right.matrices, depth, columns
        return conv_f32_packing.emit_packed(
            builder, right.part.memory, sizes, is_transposed=is_transposed
        )
    return builder.packed(
        ("batch_matmul_f32", constant_key(w), is_transposed, lanes),
        lambda: conv_f32_packing.pack_matrix(
            matrix := _plain(w, is_transposed), np.zeros(matrix.shape[1], np.float32), lanes
        ),
        is_own=True,
    )


def _plain(w: Tensor, is_transposed: bool) -> NDArray[Any]:
    matrix: NDArray[Any] = w.data.reshape(w.shape[-2:])
    return matrix.T if is_transposed else matrix


def check_int8(call: Call) -> Rejection | None:
    """Return a rejection unless all tensors are int8 with one scale, and sums are exact."""
    found = check_types(call, "INT8")
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
    return _product_of(call).rejection()


def _product_of(call: Call) -> Product:
    """Return the constants of a node's products; computed weights are left out."""
    x, w, y = call.input(0), call.input(1), call.output()
    depth = x.shape[-2] if call.options.adj_x else x.shape[-1]
    columns = w.shape[-2] if call.options.adj_y else w.shape[-1]
    multiplier = np.float64(np.float32(x.scale) * np.float32(w.scale)) / np.float64(y.scale)
    scaling = fixed_point_scaling(np.full(columns, multiplier), halves_away=True)
    if is_packed_once(w):
        weight = centred(w).reshape(w.shape[-2:])
        weight = weight if call.options.adj_y else weight.T
        return Product.of(x, weight, None, y, scaling, ActivationFunctionType.NONE)
    bias = np.zeros(columns, np.int64)
    return computed_product(x, y, scaling, depth, bias, ActivationFunctionType.NONE)


def is_packed_once(w: Tensor) -> bool:
    """Whether the right operand *w* is a single constant matrix."""
    return w.is_constant and math.prod(w.shape[:-2]) == 1


def lower_int8(call: Call, builder: ProgramBuilder) -> None:
    """Add to the program the kernel calls of an int8 BATCH_MATMUL: packing, then the products.

    Raises:
        OperatorError: after a resize, sums of products may exceed 32 bits.
    """
    x, w, y = call.input(0), call.input(1), call.output()
    product = _product_of(call)
    refused = product.rejection()
    if refused is not None:
        raise OperatorError(str(refused))
    depth, rows = product.weight.shape[1], y.shape[-2]
    if 0 in y.shape or depth == 0:
        fill(builder, Part.of(builder, y), np.array(y.zero_point, np.int8))
        return
    left, right = _stack(builder, x, y), _stack(builder, w, y)
    images = math.prod(y.shape[:-2])
    stack = conv_int8.Stack(
        images, depth * rows if left.matrices > 1 else 0, conv_int8_computed_weights.MATRIX_BYTES
    )
    if right.matrices == 1:
        stack, rows = conv_int8.Stack(), images * rows
    windows = conv_int8.pack_windows(builder, depth, ONE_PIXEL, product)
    if is_packed_once(w):
        matrix = conv_int8.pack_matrix(builder, call, product)
    else:
        stored = right.part.memory if call.options.adj_y else _turned(builder, right.part)
        matrix = conv_int8_computed_weights.emit_packed(
            call, builder, product, stored, right.matrices, w.zero_point
        )
    source = _turned(builder, left.part) if call.options.adj_x else left.part.memory
    target = builder.tensor(y.index)
    conv_int8.emit_product(builder, source, target, windows, matrix, product, rows, True, stack)


def _turned(builder: ProgramBuilder, source: Part) -> Memory:
    """Add a kernel call that transposes the matrices *source*; return the memory of its result."""
    view = source.array.swapaxes(-1, -2)
    target = Part.scratch(builder, view.shape, view.dtype)
    move(builder, source.seen(view), target)
    return target.memory


_FEATURES = ("broadcast", "computed-weights", "empty", "many-dims")
_BYTES_FEATURES = ("broadcast", "empty", "many-dims")

_F32 = Operator(check_f32, lower_f32, ("FLOAT32",), (*_FEATURES, "extreme-values"))
_BYTES = (("rhs", ("INT8",)),)
_HYBRID = Operator(
    by_bytes.check_hybrid, by_bytes.lower_hybrid, ("FLOAT32",), _BYTES_FEATURES, roles=_BYTES
)
_INT16 = Operator(
    by_bytes.check_int16, by_bytes.lower_int16, ("INT16",), _BYTES_FEATURES, roles=_BYTES
)

register_variants("FLOAT32", {"BATCH_MATMUL": by_weights(_F32, _HYBRID)})
register_variants("INT16", {"BATCH_MATMUL": _INT16})
register_variants("INT8", {"BATCH_MATMUL": Operator(check_int8, lower_int8, ("INT8",), _FEATURES)})
