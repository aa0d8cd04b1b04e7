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
def convolve(block, tile, worker):
    """Compute this tile's range of output pixels and of groups of 64 outputs of one product."""
    row_tiles, column_tiles = word(block, ROW_TILES), word(block, COLUMN_TILES)
    image, tile = tile // (row_tiles * column_tiles), tile % (row_tiles * column_tiles)
    row_tile, column_tile = tile // column_tiles, tile % column_tiles
    matrix = word(block, MATRIX) + image * word(block, MATRIX_IMAGE)
    pixels, outputs = word(block, PIXELS), word(matrix, OUTPUTS)
    first, last = pixels * row_tile // row_tiles, pixels * (row_tile + 1) // row_tiles
    groups = (outputs + 63) // 64
    last_column = groups * (column_tile + 1) // column_tiles * 4
    multiply_pixels(
        word(block, X) + image * word(block, IN_IMAGE),
        word(block, WINDOWS),
        matrix,
        word(block, LAYOUT),
        word(block, STEP),
        first,
        last,
        groups * column_tile // column_tiles * 4,
        min(last_column, (outputs + 15) // 16),
        word(block, Y) + (image * pixels + first) * outputs,
        word(block, SCRATCH) + worker * word(block, SCRATCH_BYTES),
    )


@kernel(instructions.PACK_STACK)
def pack_stack(block, tile, worker):
    """Pack this tile's groups of 64 outputs of all matrices of the stack."""
    groups, tiles = (word(block, P_OUTPUTS) + 63) // 64, word(block, P_TILES)
    units = word(block, P_IMAGES) * groups
    for unit in range(units * tile // tiles, units * (tile + 1) // tiles):
        pack_group(block, unit // groups, unit % groups)
