"""Convolutions and matrix products of 8-bit integers."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc"

from __future__ import annotations

from delegraph_numba_cpu.blocks import conv_int8 as blocks
from delegraph_numba_cpu.kernels.depthwise_int8 import depthwise_row
from delegraph_numba_cpu.kernels.machine import jit, load_u8, store_i32, store_u8, word
from delegraph_numba_cpu.kernels.matrix_int8 import (
    DEPTH,
    OUTPUTS,
    SUM_FACTOR,
    add_rows,
    multiply,
)
from delegraph_numba_cpu.kernels.registry import kernel
from delegraph_numba_cpu.kernels.windows_int8 import (
    CHANNELS,
    FLIP,
    HEIGHT,
    OUT_HEIGHT,
    OUT_WIDTH,
    ROW_BYTES,
    WIDTH,
    copy_flipped,
    gather,
)

X, Y, WINDOWS, MATRIX, PIXELS, STEP, LAYOUT, ROW_TILES, COLUMN_TILES, SCRATCH, SCRATCH_BYTES = (
    blocks.CONVOLVE.slots(*blocks.CONVOLVE.names)
)
D_X, D_Y, D_WINDOWS, D_TAPS, D_ROWS, D_TILES, D_SCRATCH, D_SCRATCH_BYTES = blocks.DEPTHWISE.slots(
    *blocks.DEPTHWISE.names
)
R_X, R_Y, R_PIXELS, R_CHANNELS, R_TIMES, R_TILES = blocks.REPEAT.slots(*blocks.REPEAT.names)


@jit
def gather_pixels(x, windows, first, count, target):
    """Lay out the windows of *count* pixels of the output, of any images, as matrix rows."""
    height, width = word(windows, OUT_HEIGHT), word(windows, OUT_WIDTH)
    size = word(windows, HEIGHT) * word(windows, WIDTH) * word(windows, CHANNELS)
    while count > 0:
        row, column = first // width, first % width
        run = min(count, width - column)
        gather(x + row // height * size, windows, row % height, column, run, target)
        target += run * word(windows, ROW_BYTES)
        first, count = first + run, count - run


@kernel(blocks.CONVOLVE)
def convolve(block, tile, worker):
    """Compute a range of pixels and outputs."""
    x, windows, matrix = word(block, X), word(block, WINDOWS), word(block, MATRIX)
    pixels, step, row_tiles = word(block, PIXELS), word(block, STEP), word(block, ROW_TILES)
    row_tile, column_tile = tile % row_tiles, tile // row_tiles
    first, last = pixels * row_tile // row_tiles, pixels * (row_tile + 1) // row_tiles
    columns, column_tiles = (word(matrix, OUTPUTS) + 15) // 16, word(block, COLUMN_TILES)
    first_column = columns * column_tile // column_tiles
    last_column = columns * (column_tile + 1) // column_tiles
    acc = word(block, SCRATCH) + worker * word(block, SCRATCH_BYTES)
    sums = acc + blocks.ACC_BYTES
    rows_at = sums + (4 * step + 127) // 64 * 64
    row_bytes, outputs = word(windows, ROW_BYTES), word(matrix, OUTPUTS)
    factor = word(matrix, SUM_FACTOR)
    for i in range(step):
        store_i32(sums + 4 * i, 0)
    while first < last:
        count = min(step, last - first)
        a, layout = x + first * row_bytes, word(block, LAYOUT)
        if layout == blocks.WINDOWED:
            gather_pixels(x, windows, first, count, rows_at)
            a = rows_at
        elif layout == blocks.FLIPPED or count < 16:  # micro-kernels read as many as 14 rows
            copy_flipped(a, rows_at, count * row_bytes, word(windows, FLIP))
            a = rows_at
        if factor:
            add_rows(a, row_bytes, count, word(matrix, DEPTH), factor, sums)
        target = word(block, Y) + first * outputs
        multiply(a, row_bytes, count, sums, matrix, first_column, last_column, target, outputs, acc)
        first += count


@kernel(blocks.DEPTHWISE)
def depthwise(block, tile, worker):
    """Compute a range of rows."""
    windows, taps = word(block, D_WINDOWS), word(block, D_TAPS)
    rows, tiles = word(block, D_ROWS), word(block, D_TILES)
    memory = word(block, D_SCRATCH) + worker * word(block, D_SCRATCH_BYTES)
    height, channels = word(windows, HEIGHT), word(windows, CHANNELS)
    size = height * word(windows, WIDTH) * channels
    out_height, out_bytes = word(windows, OUT_HEIGHT), word(windows, OUT_WIDTH) * channels
    for row in range(rows * tile // tiles, rows * (tile + 1) // tiles):
        image = word(block, D_X) + row // out_height * size
        target = word(block, D_Y) + row * out_bytes
        blocks_of_16 = (channels + 15) // 16
        depthwise_row(
            image, height, windows, taps, row % out_height, 0, blocks_of_16, target, memory
        )


@kernel(blocks.REPEAT)
def repeat(block, tile, worker):
    """Repeat the channels of a range of pixels."""
    pixels, tiles = word(block, R_PIXELS), word(block, R_TILES)
    channels, times = word(block, R_CHANNELS), word(block, R_TIMES)
    first, last = pixels * tile // tiles, pixels * (tile + 1) // tiles
    target = word(block, R_Y) + first * channels * times
    for source in range(word(block, R_X) + first * channels, word(block, R_X) + last * channels):
        for _ in range(times):
            store_u8(target, load_u8(source))
            target += 1
