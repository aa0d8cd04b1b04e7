"""BATCH_MATMUL of float32 matrices; the right ones are brought into blocks of columns first."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph import Rejection, Tensor
from delegraph.arithmetic.padding import Window
from delegraph_numba_cpu.operators.conv_f32 import UNLIMITED, emit_products
from delegraph_numba_cpu.operators.conv_packing import (
    block_widths,
    emit_pack,
    emit_packed,
    pack_matrix,
)
from delegraph_numba_cpu.operators.conv_windows import Windows
from delegraph_numba_cpu.operators.places import Part, fill
from delegraph_numba_cpu.operators.registry import (
    Call,
    Operator,
    check_types,
    first_rejection,
    register_variants,
)
from delegraph_numba_cpu.program import Memory, ProgramBuilder


def check(call: Call) -> Rejection | None:
    """Let pass float32."""
    return first_rejection(check_types(call, "FLOAT32"), check_stacks(call))


def check_stacks(call: Call) -> Rejection | None:
    """Let pass stacks of the same shape, or one matrix for all."""
    left, right = (call.input(i).shape[:-2] for i in (0, 1))
    if left != right and math.prod(left) != 1 and math.prod(right) != 1:
        return Rejection("broadcast", actual=f"{left} and {right}", expected="equal stacks, or one")
    return None


def lower(call: Call, builder: ProgramBuilder) -> None:
    """Emit the packing of the right matrices, and the products."""
    x, w, y = call.input(0), call.input(1), call.output()
    rows, columns = y.shape[-2:]
    depth = x.shape[-2] if call.options.adj_x else x.shape[-1]
    if 0 in y.shape or depth == 0:
        fill(builder, Part.of(builder, y), np.zeros((), np.float32))
        return
    left, right = math.prod(x.shape[:-2]), math.prod(w.shape[:-2])
    size = 4 * (depth + 1) * sum(block_widths(columns, builder.level.vector_bytes // 4))
    images = max(left, right)
    if right == 1:
        images, rows = 1, images * rows
    one = Window(1, 1, 1, 1, 1, 0)
    emit_products(
        builder,
        Windows(Window(rows, 1, 1, 1, rows, 0), one, images, 4 * depth, columns),
        (1, 1),
        x=_left(call, builder, left, depth),
        y=builder.tensor(y.index),
        weight=_right(call, builder, right, depth, columns),
        weight_image=size if right > 1 else 0,
        in_image=4 * depth * rows if left > 1 else 0,
        residual=0,
        low=UNLIMITED[0],
        high=UNLIMITED[1],
        sum_low=UNLIMITED[0],
        sum_high=UNLIMITED[1],
    )


def _left(call: Call, builder: ProgramBuilder, images: int, depth: int) -> Memory:
    """Return the left matrices, transposed if they must be."""
    x = call.input(0)
    source = builder.tensor(x.index)
    if not call.options.adj_x:
        return source
    rows = x.shape[-1]
    target = builder.scratch(x.bytes)
    emit_pack(
        builder,
        source=source,
        target=target,
        images=images,
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


def _right(call: Call, builder: ProgramBuilder, images: int, depth: int, columns: int) -> Memory:
    """Return the right matrices in blocks of columns; constant ones are brought there once."""
    w, lanes = call.input(1), builder.level.vector_bytes // 4
    is_transposed = bool(call.options.adj_y)
    if w.is_constant and images == 1:
        return builder.packed(
            ("batch_matmul_f32", w.index, is_transposed, lanes),
            lambda: pack_matrix(_plain(w, is_transposed), np.zeros(columns, np.float32), lanes),
        )
    sizes = images, depth, columns
    return emit_packed(builder, builder.tensor(w.index), sizes, is_transposed=is_transposed)


def _plain(w: Tensor, is_transposed: bool) -> NDArray[Any]:
    matrix: NDArray[Any] = w.data.reshape(w.shape[-2:])
    return matrix.T if is_transposed else matrix


register_variants(
    "FLOAT32",
    {
        "BATCH_MATMUL": Operator(
            check,
            lower,
            ("FLOAT32",),
            ("broadcast", "computed-weights", "empty", "extreme-values", "many-dims"),
        )
    },
)
