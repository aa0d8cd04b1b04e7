"""Consecutive convolutions computed row by row, so that intermediate rows stay in the cache."""

from __future__ import annotations

from delegraph_numba_cpu.codegen.intrinsics import jit, word
from delegraph_numba_cpu.codegen.registry import kernel
from delegraph_numba_cpu.instructions.inverted_residual_int8 import STRIP
from delegraph_numba_cpu.kernels.conv_int8_matrix import (
    DEPTH,
    OUTPUTS,
    add_rows,
    multiply,
)
from delegraph_numba_cpu.kernels.conv_int8_pixels import multiply_pixels
from delegraph_numba_cpu.kernels.conv_int8_windows import (
    CHANNELS,
    DILATION_H,
    HEIGHT,
    KERNEL_H,
    OUT_HEIGHT,
    OUT_WIDTH,
    STRIDE_H,
    TOP,
    WIDTH,
)
from delegraph_numba_cpu.kernels.depthwise_conv_int8 import depthwise_row

(
    X, Y, FIRST_WINDOWS, FIRST_MATRIX, FIRST_LAYOUT, FIRST_STEP, WINDOWS, TAPS, MATRIX, ROWS, TILES,
    KEPT, LINES, ROW, TOGETHER, SUMS, WORK, SCRATCH, SCRATCH_BYTES,
) = STRIP.slots(*STRIP.names)  # fmt: skip


@kernel(STRIP)
def strip(block, tile, worker):
    """Compute this tile's output rows: an optional convolution, a depthwise, and a 1 x 1 one."""
    rows, tiles = word(block, ROWS), word(block, TILES)
    windows, memory = (
        word(block, WINDOWS),
        word(block, SCRATCH) + worker * word(block, SCRATCH_BYTES),
    )
    height, out_height = word(windows, HEIGHT), word(windows, OUT_HEIGHT)
    size = height * word(windows, WIDTH) * word(windows, CHANNELS)
    channels = word(windows, CHANNELS)
    span = (word(windows, KERNEL_H) - 1) * word(windows, DILATION_H)
    row_bytes, together = word(windows, OUT_WIDTH) * channels, word(block, TOGETHER)
    following, current, waiting = 0, -1, 0
    end = rows * (tile + 1) // tiles
    for row in range(rows * tile // tiles, end):
        image, y = row // out_height, row % out_height
        if word(block, FIRST_MATRIX):
            if image != current:
                following, current = 0, image
            top = y * word(windows, STRIDE_H) - word(windows, TOP)
            following = max(following, top)
            while following < min(top + span + 1, height):
                compute_line(block, image, following, memory)
                following += 1
            source, kept = memory + word(block, LINES), word(block, KEPT)
        else:
            source, kept = word(block, X) + image * size, height
        target = memory + word(block, ROW) + waiting * row_bytes
        last = (channels + 15) // 16
        work = memory + word(block, WORK)
        depthwise_row(source, kept, windows, word(block, TAPS), y, 0, last, target, work)
        waiting += 1
        if waiting == together or row + 1 == end:
            project(block, row + 1 - waiting, waiting, memory)
            waiting = 0


@jit
def compute_line(block, image, y, memory):
    """Compute row *y* of the first convolution's output, and store it in the ring buffer."""
    windows = word(block, WINDOWS)
    width, channels = word(windows, WIDTH), word(windows, CHANNELS)
    first = (image * word(windows, HEIGHT) + y) * width
    line = memory + word(block, LINES) + y % word(block, KEPT) * width * channels
    multiply_pixels(
        word(block, X),
        word(block, FIRST_WINDOWS),
        word(block, FIRST_MATRIX),
        word(block, FIRST_LAYOUT),
        word(block, FIRST_STEP),
        first,
        first + width,
        0,
        (channels + 15) // 16,
        line,
        memory + word(block, WORK),
    )


@jit
def project(block, first, rows, memory):
    """Compute *rows* output rows by the 1 x 1 convolution, from output row *first* on."""
    matrix, width = word(block, MATRIX), word(word(block, WINDOWS), OUT_WIDTH)
    outputs, depth = word(matrix, OUTPUTS), word(matrix, DEPTH)
    source, pixels = memory + word(block, ROW), rows * width
    sums = add_rows(source, depth, pixels, matrix, memory + word(block, SUMS))
    target = word(block, Y) + first * width * outputs
    columns = (outputs + 15) // 16
    multiply(source, depth, pixels, sums, matrix, 0, columns, target, outputs, memory)
