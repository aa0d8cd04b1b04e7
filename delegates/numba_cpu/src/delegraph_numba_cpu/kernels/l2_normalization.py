"""Kernels of L2_NORMALIZATION: each row divided by its Euclidean norm."""

from __future__ import annotations

import numpy as np
from numba import types

from delegraph_numba_cpu.codegen.intrinsics import jit, load_u8, store_i8, word
from delegraph_numba_cpu.codegen.registry import kernel
from delegraph_numba_cpu.codegen.row_passes import add, float_kernel, row_pass
from delegraph_numba_cpu.instructions.l2_normalization import (
    L2_NORMALIZATION,
    L2_NORMALIZATION_8_BIT,
)
from delegraph_numba_cpu.kernels.fixed_point import inverse_sqrt, scaled

ZERO, EPSILON = np.float32(0.0), np.float32(1e-6)

sum_of_squares = row_pass(lambda x, a, b: x * x, 0.0, add)
divided = row_pass(lambda x, divisor, b: x / divisor)


@jit
def l2_normalization_row(source, target, rest, results, whole, count, beta):
    """Write a row divided by its Euclidean norm, or by 1e-6 if the norm is less.

    For the arguments see *row* of ``row_passes.float_kernel``; *beta* is unused.
    """
    length = np.sqrt(sum_of_squares(source, target, rest, results, whole, count, ZERO, ZERO))
    divisor = EPSILON if length < EPSILON else length
    divided(source, target, rest, results, whole, count, divisor, ZERO)


float_kernel(L2_NORMALIZATION, l2_normalization_row, ZERO)

(
    SOURCE, TARGET, ROWS, LENGTH, TILES, FLIP, ZERO_POINT, MULTIPLE, SHIFT, TARGET_ZERO,
) = L2_NORMALIZATION_8_BIT.slots(*L2_NORMALIZATION_8_BIT.names)  # fmt: skip


@kernel(L2_NORMALIZATION_8_BIT)
def l2_normalization_8_bit(record, tile, worker):
    """Write this tile's rows of bytes divided by their norms.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    rows, tiles, length = word(record, ROWS), word(record, TILES), word(record, LENGTH)
    flip, zero, multiple = word(record, FLIP), word(record, ZERO_POINT), word(record, MULTIPLE)
    target_zero = word(record, TARGET_ZERO)
    for i in range(rows * tile // tiles, rows * (tile + 1) // tiles):
        source, target = word(record, SOURCE) + i * length, word(record, TARGET) + i * length
        squares = 0
        for j in range(length):
            difference = (types.int64(load_u8(source + j)) ^ flip) - zero
            squares += difference * difference
        multiplier, shift = inverse_sqrt(squares)
        shift += word(record, SHIFT)
        for j in range(length):
            difference = (types.int64(load_u8(source + j)) ^ flip) - zero
            value = scaled(multiple * difference, multiplier, shift, False)
            store_i8(target + j, min(max(value, -128), 127) + target_zero)
