"""Padded lines of int8 images, and the addresses of windows in them."""

from __future__ import annotations

from delegraph_numba_cpu.codegen.conv_int8_micro_kernels import HAS_SPLIT_ROWS, split_rows
from delegraph_numba_cpu.codegen.intrinsics import fill_bytes, jit, load_i64, store_i64, word
from delegraph_numba_cpu.instructions import conv_int8 as instructions
from delegraph_numba_cpu.kernels.conv_int8_windows import (
    CHANNELS,
    DILATION_H,
    FLIP,
    HEIGHT,
    KERNEL_H,
    LEFT,
    LINE_BYTES,
    OUT_WIDTH,
    STRIDE_H,
    STRIDE_W,
    TOP,
    WIDTH,
    ZERO,
    copy_flipped,
)


@jit
def write_lines(image, windows, first, count, table, target):
    """Write the padded lines that windows of some pixels read, and the addresses of these windows.

    On levels with ``HAS_SPLIT_ROWS``, the lines are then copied as int16 to the memory after them.
    The addresses are those of windows in this copy.

    Args:
        image: address of the image.
        windows: address of the record that describes the windows; see ``WINDOWS``.
        first: number of the first output pixel, counted in the image.
        count: number of output pixels.
        table: address to which the windows' addresses are written, as by :func:`write_addresses`.
        target: address to which the lines are written.
    """
    width, line_bytes = word(windows, OUT_WIDTH), word(windows, LINE_BYTES)
    row, last = first // width, (first + count - 1) // width
    stride = word(windows, STRIDE_H)
    y = row * stride - word(windows, TOP)
    lines = (last - row) * stride + (word(windows, KERNEL_H) - 1) * word(windows, DILATION_H) + 1
    pad_lines(image, windows, y, lines, target)
    unit = 1
    if HAS_SPLIT_ROWS:
        split = target + lines * line_bytes
        split_rows(target, 0, 1, lines * line_bytes // 4, split)
        target, unit = split, 2
    write_addresses(target, windows, first - row * width, count, table, unit)


@jit
def pad_lines(image, windows, y, count, target):
    """Write *count* lines of an image with their padding to *target*, from line *y* on.

    Lines outside of the image are wholly padding. *windows* is the address of the record
    ``WINDOWS``: its word ``zero`` is the byte of the padding, and ``flip`` is xored with all other
    bytes.
    """
    channels, line_bytes = word(windows, CHANNELS), word(windows, LINE_BYTES)
    size, flip = word(windows, WIDTH) * channels, word(windows, FLIP)
    fill_bytes(target, word(windows, ZERO), count * line_bytes)
    first, last = max(-y, 0), min(word(windows, HEIGHT) - y, count)
    target += word(windows, LEFT) * channels
    for i in range(first, last):
        copy_flipped(image + (y + i) * size, target + i * line_bytes, size, flip)


@jit
def write_addresses(lines, windows, column, count, table, unit):
    """Write the addresses of the windows of some pixels, then ``SPARE_WINDOWS`` copies of the last.

    Args:
        lines: address of the first padded line that the window of the first pixel reads.
        windows: address of the record that describes the windows.
        column: number of the first pixel in its output row.
        count: number of pixels.
        table: address to which the addresses are written, as int64.
        unit: number of bytes that a padded line has for each byte of the image: 2 for lines of
            int16, otherwise 1.
    """
    width = word(windows, OUT_WIDTH)
    right = word(windows, STRIDE_W) * word(windows, CHANNELS) * unit
    down = word(windows, STRIDE_H) * word(windows, LINE_BYTES) * unit
    while count > 0:
        run = min(count, width - column)
        for i in range(run):
            store_i64(table + 8 * i, lines + (column + i) * right)
        table, count = table + 8 * run, count - run
        lines, column = lines + down, 0
    last = load_i64(table - 8)
    for i in range(instructions.SPARE_WINDOWS):
        store_i64(table + 8 * i, last)
