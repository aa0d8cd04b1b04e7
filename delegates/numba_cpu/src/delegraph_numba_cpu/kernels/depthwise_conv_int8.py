"""Depthwise convolutions of 8-bit integers."""

from __future__ import annotations

from delegraph_numba_cpu.codegen.conv_int8_micro_kernels import (
    TAP_PIXELS,
    dot_tap,
    dot_taps,
    fill_dwords,
)
from delegraph_numba_cpu.codegen.depthwise_conv_int8_columns import pack_column, pack_column_64
from delegraph_numba_cpu.codegen.depthwise_conv_int8_pairs import adjacent_product
from delegraph_numba_cpu.codegen.dot_products import HAS_MADD, SEEN
from delegraph_numba_cpu.codegen.intrinsics import jit, load_u8, store_u8, word
from delegraph_numba_cpu.codegen.registry import kernel, level
from delegraph_numba_cpu.instructions import depthwise_conv_int8 as instructions
from delegraph_numba_cpu.kernels.conv_int8_matrix import (
    HEADER_BYTES,
    finish_rows,
    finish_rows_64,
)
from delegraph_numba_cpu.kernels.conv_int8_windows import (
    CHANNELS,
    DILATION_H,
    DILATION_W,
    FLIP,
    HEIGHT,
    KERNEL_H,
    KERNEL_W,
    LEFT,
    OUT_HEIGHT,
    OUT_WIDTH,
    STRIDE_H,
    STRIDE_W,
    TOP,
    WIDTH,
    ZERO,
)
from delegraph_numba_cpu.kernels.depthwise_conv_int8_planes import dot_units, plane_row
from delegraph_numba_cpu.kernels.depthwise_conv_int8_rows import fill_columns, four_rows

TAPS = instructions.TAPS

WEIGHTS, HEADERS, OFFSETS, COUNT, LOW, TAP_CHANNELS, BLOCK_BYTES, IS_PAIRED, COLUMNS = TAPS.slots(
    "weights", "headers", "offsets", "count", "low", "channels", "block_bytes", "is_paired",
    "plane_columns",
)  # fmt: skip

HAS_PLANES = level().vector_bytes == instructions.PLANE_LEVEL_BYTES


@jit
def line_columns(windows):
    """Return the number of columns of a packed line, padding on both sides included.

    *windows* is the address of the record; see ``WINDOWS``.
    """
    reach = (word(windows, OUT_WIDTH) - 1) * word(windows, STRIDE_W)
    return reach + (word(windows, KERNEL_W) - 1) * word(windows, DILATION_W) + 1


@jit
def pack_line(image, modulus, windows, taps, row, channel, wide, nothing, line):
    """Pack the input rows of one output row into words of four vertically adjacent bytes.

    Args:
        image: address of the image's rows.
        modulus: number of rows that are stored, as in a ring buffer.
        windows: address of the record; see ``WINDOWS``.
        taps: address of the record; see ``TAPS``.
        row: number of the output row.
        channel: number of the first of 16 or 64 channels.
        wide: whether 64 channels are packed, in the order of ``dot_products.zipped``.
        nothing: address of 64 bytes that stand for each row outside of the image. Like the image's
            bytes, they are then xored with the word ``flip`` of *windows*, and with ``SEEN``.
        line: address for the result, ``[groups of 4 kernel rows, columns, 16 or 64]`` words of 32
            bits.
    """
    width, channels = word(windows, WIDTH), word(taps, TAP_CHANNELS)
    left, columns = word(windows, LEFT), line_columns(windows)
    row_bytes, dilation = width * channels, word(windows, DILATION_H)
    kernel, flip = word(windows, KERNEL_H), word(windows, FLIP) * 0x01010101 ^ SEEN
    around = word(windows, ZERO) * 0x01010101 ^ SEEN
    column_bytes = 256 if wide else 64
    y = row * word(windows, STRIDE_H) - word(windows, TOP)
    for first in range(0, kernel, 4):
        a, b, c, d = four_rows(image, modulus, row_bytes, windows, first, y, nothing)
        # A row outside the image has the same bytes for every column, so its step is 0.
        a, a_step = (a, 0) if a == nothing else (a + channel, channels)
        b, b_step = (b, 0) if b == nothing else (b + channel, channels)
        c, c_step = (c, 0) if c == nothing else (c + channel, channels)
        d, d_step = (d, 0) if d == nothing else (d + channel, channels)
        inside = max(min(width, columns - left), 0)
        fill_columns(line, min(left, columns), column_bytes, around)
        place = line + left * column_bytes
        if wide:
            for _ in range(inside):
                pack_column_64(a, b, c, d, flip, place, 64)
                a, b, c, d = a + a_step, b + b_step, c + c_step, d + d_step
                place += 256
        else:
            for _ in range(inside):
                pack_column(a, b, c, d, channels - channel, flip, place)
                a, b, c, d = a + a_step, b + b_step, c + c_step, d + d_step
                place += 64
        fill_columns(place, columns - left - inside, column_bytes, around)
        line += column_bytes * columns
        y += 4 * dilation


@jit
def depthwise_row(image, modulus, windows, taps, row, first, last, target, memory):
    """Compute one row of the output, for a range of blocks of 16 channels.

    Args:
        image: address of the image's rows.
        modulus: number of rows that are stored, as in a ring buffer.
        windows: address of the record; see ``WINDOWS``.
        taps: address of the record; see ``TAPS``.
        row: number of the output row.
        first: number of the first block of 16 channels; a multiple of 4.
        last: number of the block after the last; a multiple of 4, or the number of all blocks.
        target: address of the row's first result, of all channels.
        memory: address of scratch memory for padding, accumulators, and a packed line.
    """
    channels, out_width = word(taps, TAP_CHANNELS), word(windows, OUT_WIDTH)
    nothing, sums = memory, memory + 64
    around = (word(windows, ZERO) ^ word(windows, FLIP)) * 0x01010101
    fill_dwords(nothing, around)
    if HAS_PLANES and word(taps, COLUMNS):
        plane_row(image, modulus, windows, taps, row, target, memory)
        return
    block = first
    while block < last:
        wide = 16 * block + 64 <= channels
        line = sums + (256 if wide else 64) * out_width
        pack_line(image, modulus, windows, taps, row, 16 * block, wide, nothing, line)
        dot_row(line, windows, taps, block, wide, sums)
        header = word(taps, HEADERS) + block * HEADER_BYTES
        place, record = target + 16 * block, taps + 8 * LOW
        if wide:
            finish_rows_64(sums, out_width, header, place, channels, record)
        else:
            left = channels - 16 * block
            finish_rows(sums, 64, out_width, header, place, channels, left, record)
        block += 4 if wide else 1


@jit
def dot_row(line, windows, taps, block, wide, sums):
    """Store the sums over all taps of one output row, for 16 or 64 channels.

    Args:
        line: address of the packed line; see :func:`pack_line`.
        windows: address of the record; see ``WINDOWS``.
        taps: address of the record; see ``TAPS``.
        block: number of the first block of 16 channels.
        wide: whether these are 64 channels.
        sums: address of the results, int32 ``[out_width, 16 or 64]``.
    """
    if HAS_MADD and word(taps, IS_PAIRED):
        dot_row_pairs(line, windows, taps, block, wide, sums)
        return
    if wide:
        units = word(windows, OUT_WIDTH)
        dot_units(line, 256 * word(windows, STRIDE_W), 64, 256, taps, block, units, sums)
        return
    out_width, count, offsets = word(windows, OUT_WIDTH), word(taps, COUNT), word(taps, OFFSETS)
    weights = word(taps, WEIGHTS) + block * word(taps, BLOCK_BYTES)
    header = word(taps, HEADERS) + block * HEADER_BYTES
    step, x = word(windows, STRIDE_W) * 64, 0
    while x + TAP_PIXELS <= out_width:
        pixel, acc = line + x * step, sums + 64 * x
        dot_taps(pixel, step, 64, 64, weights, offsets, count, header, acc)
        x += TAP_PIXELS
    while x < out_width:
        pixel, acc = line + x * step, sums + 64 * x
        dot_tap(pixel, step, 64, 64, weights, offsets, count, header, acc)
        x += 1


@jit
def dot_row_pairs(line, windows, taps, block, wide, sums):
    """Store the same sums as :func:`dot_row`, by the micro-kernel that multiplies int16 in pairs.

    For the arguments see :func:`dot_row`.

    If there are gaps between taps, the pixels computed together are as far apart as taps, so that
    their windows share columns.
    """
    kernel, stride, apart = (
        word(windows, KERNEL_W), word(windows, STRIDE_W), word(windows, DILATION_W),
    )  # fmt: skip
    groups, odd_groups = (word(windows, KERNEL_H) + 3) // 4, (word(windows, KERNEL_H) + 2) // 4
    size = 256 if wide else 64
    used = size if wide or word(taps, TAP_CHANNELS) - 16 * block > 8 else 32
    weights = word(taps, WEIGHTS) + block * word(taps, BLOCK_BYTES)
    headers = word(taps, HEADERS) + block * HEADER_BYTES
    for phase in range(apart):
        pixels = (word(windows, OUT_WIDTH) - phase + apart - 1) // apart
        height = pixels_together(pixels)
        for start in range(0, pixels, height):
            x = phase + min(start, pixels - height) * apart
            adjacent_product(
                height, kernel, stride, line + x * stride * size, apart * size,
                line_columns(windows) * size, weights, size, groups, odd_groups, headers,
                sums + x * size, apart * size, used,
            )  # fmt: skip


@jit
def pixels_together(pixels):
    """Return how many pixels the micro-kernel computes together: 4, 6, 7 or 8.

    It is the number with which fewest pixels are computed twice; of equal ones, the largest.
    *pixels* is the number of pixels of the row, at least 4.
    """
    found = 4
    for height in (6, 7, 8):
        computed = -(-pixels // height) * height
        if height <= pixels and computed <= -(-pixels // found) * found:
            found = height
    return found


D_X, D_Y, D_WINDOWS, D_TAPS, D_ROWS, D_TILES, D_SCRATCH, D_SCRATCH_BYTES = (
    instructions.DEPTHWISE.slots(*instructions.DEPTHWISE.names)
)

R_X, R_Y, R_PIXELS, R_CHANNELS, R_TIMES, R_TILES = instructions.REPEAT.slots(
    *instructions.REPEAT.names
)


@kernel(instructions.DEPTHWISE)
def depthwise(record, tile, worker):
    """Compute this tile's output rows.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    windows, taps = word(record, D_WINDOWS), word(record, D_TAPS)
    rows, tiles = word(record, D_ROWS), word(record, D_TILES)
    memory = word(record, D_SCRATCH) + worker * word(record, D_SCRATCH_BYTES)
    height, channels = word(windows, HEIGHT), word(windows, CHANNELS)
    size = height * word(windows, WIDTH) * channels
    out_height, out_bytes = word(windows, OUT_HEIGHT), word(windows, OUT_WIDTH) * channels
    for row in range(rows * tile // tiles, rows * (tile + 1) // tiles):
        image = word(record, D_X) + row // out_height * size
        target = word(record, D_Y) + row * out_bytes
        blocks_of_16 = (channels + 15) // 16
        depthwise_row(
            image, height, windows, taps, row % out_height, 0, blocks_of_16, target, memory
        )


@kernel(instructions.REPEAT)
def repeat(record, tile, worker):
    """Repeat each channel of this tile's pixels ``times`` times.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    pixels, tiles = word(record, R_PIXELS), word(record, R_TILES)
    channels, times = word(record, R_CHANNELS), word(record, R_TIMES)
    first, last = pixels * tile // tiles, pixels * (tile + 1) // tiles
    target = word(record, R_Y) + first * channels * times
    for source in range(word(record, R_X) + first * channels, word(record, R_X) + last * channels):
        for _ in range(times):
            store_u8(target, load_u8(source))
            target += 1
