"""Convolutions and matrix products of 8-bit integers."""

from __future__ import annotations

from delegraph_numba_cpu.codegen.intrinsics import word
from delegraph_numba_cpu.codegen.registry import kernel
from delegraph_numba_cpu.instructions import conv_int8 as instructions
from delegraph_numba_cpu.kernels.conv_int8_matrix import (
    OUTPUTS,
)
from delegraph_numba_cpu.kernels.conv_int8_packing import pack_group
from delegraph_numba_cpu.kernels.conv_int8_pixels import multiply_pixels

(
    X, Y, WINDOWS, MATRIX, PIXELS, STEP, LAYOUT, ROW_TILES, COLUMN_TILES, IN_IMAGE, MATRIX_IMAGE,
    SCRATCH, SCRATCH_BYTES,
) = instructions.CONVOLVE.slots(*instructions.CONVOLVE.names)  # fmt: skip

P_IMAGES, P_OUTPUTS, P_TILES = instructions.PACK_STACK.slots("images", "outputs", "tiles")


@kernel(instructions.CONVOLVE)
def convolve(record, tile, worker):
    """Compute this tile: a range of pixels and of groups of 64 outputs, of one product of a stack.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    row_tiles, column_tiles = word(record, ROW_TILES), word(record, COLUMN_TILES)
    image, tile = tile // (row_tiles * column_tiles), tile % (row_tiles * column_tiles)
    row_tile, column_tile = tile // column_tiles, tile % column_tiles
    matrix = word(record, MATRIX) + image * word(record, MATRIX_IMAGE)
    pixels, outputs = word(record, PIXELS), word(matrix, OUTPUTS)
    first, last = pixels * row_tile // row_tiles, pixels * (row_tile + 1) // row_tiles
    groups = (outputs + 63) // 64
    last_column = groups * (column_tile + 1) // column_tiles * 4
    multiply_pixels(
        word(record, X) + image * word(record, IN_IMAGE),
        word(record, WINDOWS),
        matrix,
        word(record, LAYOUT),
        word(record, STEP),
        first,
        last,
        groups * column_tile // column_tiles * 4,
        min(last_column, (outputs + 15) // 16),
        word(record, Y) + (image * pixels + first) * outputs,
        word(record, SCRATCH) + worker * word(record, SCRATCH_BYTES),
    )


@kernel(instructions.PACK_STACK)
def pack_stack(record, tile, worker):
    """Pack a tile's share of the weights of a batched matrix product, in groups of 64 columns.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    groups, tiles = (word(record, P_OUTPUTS) + 63) // 64, word(record, P_TILES)
    units = word(record, P_IMAGES) * groups
    for unit in range(units * tile // tiles, units * (tile + 1) // tiles):
        pack_group(record, unit // groups, unit % groups)
