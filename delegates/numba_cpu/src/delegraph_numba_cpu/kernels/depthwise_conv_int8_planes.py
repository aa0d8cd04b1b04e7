"""Depthwise convolutions of 8-bit integers with 16 or 32 channels, 64 adjacent values at a time.

A row of an image with so few channels is treated as one long run of bytes. The packed line is
stored as four planes, one for each vector that ``dot_products.zipped`` returns. A plane has one
byte for each byte of the row. So the values of the next pixel to the right are as many bytes
further as there are channels.
"""

from __future__ import annotations

from delegraph_numba_cpu.codegen.conv_int8_micro_kernels import (
    TAP_PIXELS,
    dot_tap_64,
    dot_taps_64,
)
from delegraph_numba_cpu.codegen.depthwise_conv_int8_columns import pack_column_64
from delegraph_numba_cpu.codegen.dot_products import SEEN
from delegraph_numba_cpu.codegen.intrinsics import jit, word
from delegraph_numba_cpu.instructions.depthwise_conv_int8 import TAPS
from delegraph_numba_cpu.kernels.conv_int8_matrix import HEADER_BYTES, finish_rows_64
from delegraph_numba_cpu.kernels.conv_int8_windows import (
    DILATION_H,
    FLIP,
    KERNEL_H,
    LEFT,
    OUT_WIDTH,
    STRIDE_H,
    TOP,
    WIDTH,
    ZERO,
)
from delegraph_numba_cpu.kernels.depthwise_conv_int8_rows import fill_columns, four_rows

WEIGHTS, HEADERS, OFFSETS, COUNT, LOW, CHANNELS, BLOCK_BYTES, COLUMNS = TAPS.slots(
    "weights", "headers", "offsets", "count", "low", "channels", "block_bytes", "plane_columns"
)


@jit
def plane_row(image, modulus, windows, taps, row, target, memory):
    """Compute one row of the output; see ``depthwise_row`` for arguments."""
    channels = word(taps, CHANNELS)
    units = word(windows, OUT_WIDTH) * channels // 64
    sums = memory + 64
    groups = (word(windows, KERNEL_H) + 3) // 4
    apart = 64 + groups * word(taps, COLUMNS) * channels
    # Values in the image are at multiples of 64 bytes of their plane, those in its padding before.
    line = sums + 256 * units + (-word(windows, LEFT) * channels & 63)
    pack_planes(image, modulus, windows, taps, row, memory, line, apart)
    header = word(taps, HEADERS)
    dot_units(line, 64, apart, channels, taps, 0, units, sums)
    finish_rows_64(sums, units, header, target, 64, taps + 8 * LOW)


@jit
def dot_units(line, unit_bytes, vector_bytes, column_bytes, taps, block, units, sums):
    """Store the sums over all taps for adjacent units of 64 values.

    Args:
        line: address of the first unit's four packed vectors.
        unit_bytes: number of bytes from one unit to the next.
        vector_bytes: number of bytes from one vector to the next.
        column_bytes: number of bytes from one column to the next.
        taps: address of the record; see ``TAPS``.
        block: number of the first block of 16 channels.
        units: number of units.
        sums: address of the results, int32 ``[units, 64]``.
    """
    count, offsets = word(taps, COUNT), word(taps, OFFSETS)
    weights = word(taps, WEIGHTS) + block * word(taps, BLOCK_BYTES)
    header, x = word(taps, HEADERS) + block * HEADER_BYTES, 0
    while x + TAP_PIXELS <= units:
        dot_taps_64(
            line, unit_bytes, vector_bytes, column_bytes, weights, offsets, count, header, sums
        )
        line, sums = line + TAP_PIXELS * unit_bytes, sums + TAP_PIXELS * 256
        x += TAP_PIXELS
    while x < units:
        dot_tap_64(
            line, unit_bytes, vector_bytes, column_bytes, weights, offsets, count, header, sums
        )
        line, sums = line + unit_bytes, sums + 256
        x += 1


@jit
def pack_planes(image, modulus, windows, taps, row, nothing, line, apart):
    """Pack the input rows of one output row into words of four vertically adjacent bytes.

    Args:
        image: address of the image's rows.
        modulus: number of rows that are stored, as in a ring buffer.
        windows: address of the record; see ``WINDOWS``.
        taps: address of the record; see ``TAPS``.
        row: number of the output row.
        nothing: address of 64 bytes that stand for each row outside of the image. Like the image's
            bytes, they are then xored with the word ``flip`` of *windows*, and with ``SEEN``.
        line: address of the first of four planes for the result, each ``[groups of 4 kernel rows,
            plane_columns, channels]`` bytes.
        apart: number of bytes from one plane to the next.
    """
    channels, kernel = word(taps, CHANNELS), word(windows, KERNEL_H)
    flip = word(windows, FLIP) * 0x01010101 ^ SEEN
    around = word(windows, ZERO) * 0x01010101 ^ SEEN
    row_bytes = word(windows, WIDTH) * channels
    before = word(windows, LEFT) * channels
    y = row * word(windows, STRIDE_H) - word(windows, TOP)
    for first in range(0, kernel, 4):
        place = line + before
        for plane in range(4):
            edge = place + plane * apart
            count = (before + 63) // 64
            fill_columns(edge - 64 * count, count, 64, around)
        a, b, c, d = four_rows(image, modulus, row_bytes, windows, first, y, nothing)
        # A row outside the image has the same bytes for every column, so its step is 0.
        a_step = 0 if a == nothing else 64
        b_step = 0 if b == nothing else 64
        c_step = 0 if c == nothing else 64
        d_step = 0 if d == nothing else 64
        for _ in range(row_bytes // 64):
            pack_column_64(a, b, c, d, flip, place, apart)
            a, b, c, d = a + a_step, b + b_step, c + c_step, d + d_step
            place += 64
        end = line + word(taps, COLUMNS) * channels
        count = (end - place - 1) // 64  # the last columns are not read
        for plane in range(4):
            fill_columns(place + plane * apart, count, 64, around)
        line += word(taps, COLUMNS) * channels
        y += 4 * word(windows, DILATION_H)
