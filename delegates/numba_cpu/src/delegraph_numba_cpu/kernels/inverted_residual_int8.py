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
def strip(record, tile, worker):
    """Compute this tile's output rows by an optional convolution, a depthwise one and a 1 x 1 one.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    rows, tiles = word(record, ROWS), word(record, TILES)
    windows, memory = (
        word(record, WINDOWS),
        word(record, SCRATCH) + worker * word(record, SCRATCH_BYTES),
    )
    height, out_height = word(windows, HEIGHT), word(windows, OUT_HEIGHT)
    size = height * word(windows, WIDTH) * word(windows, CHANNELS)
    channels = word(windows, CHANNELS)
    span = (word(windows, KERNEL_H) - 1) * word(windows, DILATION_H)
    row_bytes, together = word(windows, OUT_WIDTH) * channels, word(record, TOGETHER)
    following, current, waiting = 0, -1, 0
    end = rows * (tile + 1) // tiles
    for row in range(rows * tile // tiles, end):
        image, y = row // out_height, row % out_height
        if word(record, FIRST_MATRIX):
            if image != current:
                following, current = 0, image
            top = y * word(windows, STRIDE_H) - word(windows, TOP)
            following = max(following, top)
            while following < min(top + span + 1, height):
                compute_line(record, image, following, memory)
                following += 1
            source, kept = memory + word(record, LINES), word(record, KEPT)
        else:
            source, kept = word(record, X) + image * size, height
        target = memory + word(record, ROW) + waiting * row_bytes
        last = (channels + 15) // 16
        work = memory + word(record, WORK)
        depthwise_row(source, kept, windows, word(record, TAPS), y, 0, last, target, work)
        waiting += 1
        if waiting == together or row + 1 == end:
            project(record, row + 1 - waiting, waiting, memory)
            waiting = 0


@jit
def compute_line(record, image, y, memory):
    """Compute a row of the first convolution's output, and store it in the ring buffer.

    Args:
        record: address of the kernel call's operands.
        image: number of the image.
        y: number of the row.
        memory: address of this thread's scratch memory, which has the ring buffer.
    """
    windows = word(record, WINDOWS)
    width, channels = word(windows, WIDTH), word(windows, CHANNELS)
    first = (image * word(windows, HEIGHT) + y) * width
    line = memory + word(record, LINES) + y % word(record, KEPT) * width * channels
    multiply_pixels(
        word(record, X),
        word(record, FIRST_WINDOWS),
        word(record, FIRST_MATRIX),
        word(record, FIRST_LAYOUT),
        word(record, FIRST_STEP),
        first,
        first + width,
        0,
        (channels + 15) // 16,
        line,
        memory + word(record, WORK),
    )


@jit
def project(record, first, rows, memory):
    """Compute *rows* output rows of the 1 x 1 convolution, from output row *first* on.

    *record* is the address of the kernel call's operands.
    """
    matrix, width = word(record, MATRIX), word(word(record, WINDOWS), OUT_WIDTH)
    outputs, depth = word(matrix, OUTPUTS), word(matrix, DEPTH)
    source, pixels = memory + word(record, ROW), rows * width
    sums = add_rows(source, depth, pixels, matrix, memory + word(record, SUMS))
    target = word(record, Y) + first * width * outputs
    columns = (outputs + 15) // 16
    multiply(source, depth, pixels, sums, matrix, 0, columns, target, outputs, memory, None)
