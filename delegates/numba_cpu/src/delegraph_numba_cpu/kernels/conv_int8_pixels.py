"""Computes pixels of a convolution's output: windows become matrix rows, which are multiplied."""

from __future__ import annotations

from delegraph_numba_cpu.codegen.intrinsics import jit, word
from delegraph_numba_cpu.instructions import conv_int8 as instructions
from delegraph_numba_cpu.kernels.conv_int8_lines import write_lines
from delegraph_numba_cpu.kernels.conv_int8_matrix import (
    OUTPUTS,
    STEPS,
    add_rows,
    multiply,
)
from delegraph_numba_cpu.kernels.conv_int8_windows import (
    CHANNELS,
    FLIP,
    HEIGHT,
    OUT_HEIGHT,
    OUT_WIDTH,
    ROW_BYTES,
    WIDTH,
    copy_flipped,
    gather,
    have_room,
)


@jit
def multiply_pixels(
    x, windows, matrix, layout, step, first, last, first_column, last_column, target, memory
):
    """Compute pixels *first* to *last* of the output of all images.

    Args:
        x: address of the first image.
        windows: address of the record that describes the windows; see ``WINDOWS``.
        matrix: address of the record that describes the weights; see ``MATRIX``.
        layout: whether windows are copied, already are rows of a matrix, or are read from padded
            lines; see ``CONVOLVE``.
        step: number of pixels that are computed together.
        first: number of the first pixel.
        last: number of the pixel after the last one.
        first_column: number of the first block of 16 outputs.
        last_column: number of the block after the last one.
        target: address of the first pixel's results.
        memory: address of scratch memory. It has the memory of :func:`multiply`, an int32 for each
            row, and *step* windows; for padded lines, see ``CONVOLVE``.
    """
    if layout == instructions.LINES:
        multiply_lines(
            x, windows, matrix, step, first, last, first_column, last_column, target, memory
        )
        return
    sums = memory + instructions.ACC_BYTES + instructions.SPLIT_BYTES * word(matrix, STEPS)
    rows_at = sums + (4 * step + 127) // 64 * 64
    row_bytes, outputs = word(windows, ROW_BYTES), word(matrix, OUTPUTS)
    while first < last:
        count = min(step, last - first)
        a = x + first * row_bytes
        if layout == instructions.WINDOWED:
            gather_pixels(x, windows, first, count, rows_at, memory)
            a = rows_at
        elif layout == instructions.FLIPPED or count < 16:  # micro-kernels read up to 16 rows
            copy_flipped(a, rows_at, count * row_bytes, word(windows, FLIP))
            a = rows_at
        added = add_rows(a, row_bytes, count, matrix, sums)
        multiply(
            a, row_bytes, count, added, matrix, first_column, last_column, target, outputs, memory,
            None,
        )  # fmt: skip
        first, target = first + count, target + count * outputs


@jit
def multiply_lines(
    x, windows, matrix, step, first, last, first_column, last_column, target, memory
):
    """Compute pixels from padded lines; arguments are those of :func:`multiply_pixels`."""
    table, outputs = memory + instructions.ACC_BYTES, word(matrix, OUTPUTS)
    lines = table + 8 * (step + instructions.SPARE_WINDOWS)
    pixels = word(windows, OUT_HEIGHT) * word(windows, OUT_WIDTH)
    size = word(windows, HEIGHT) * word(windows, WIDTH) * word(windows, CHANNELS)
    while first < last:
        image, start = first // pixels, first % pixels
        count = min(step, last - first, pixels - start)
        write_lines(x + image * size, windows, start, count, table, lines)
        multiply(
            table, 8, count, 0, matrix, first_column, last_column, target, outputs, memory, windows
        )
        first, target = first + count, target + count * outputs


@jit
def gather_pixels(x, windows, first, count, target, lines):
    """Write the windows of *count* output pixels, which may be of several images, as matrix rows.

    *x* is the address of the first image, and *target* that of the first row. *first* is the number
    of the first pixel, counted over all images. *lines* is the address of ``LINES_BYTES`` bytes of
    scratch memory; 0 for none.
    """
    if not have_room(windows):
        lines = 0
    height, width = word(windows, OUT_HEIGHT), word(windows, OUT_WIDTH)
    size = word(windows, HEIGHT) * word(windows, WIDTH) * word(windows, CHANNELS)
    while count > 0:
        row, column = first // width, first % width
        run = min(count, width - column)
        gather(x + row // height * size, windows, row % height, column, run, target, lines)
        target += run * word(windows, ROW_BYTES)
        first, count = first + run, count - run
