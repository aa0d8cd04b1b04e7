"""Products of float activations and 8-bit weights."""

from __future__ import annotations

import numpy as np

from delegraph_numba_cpu.codegen.conv_hybrid_ir import (
    finish_floats,
    finish_parts,
    measure_floats,
    quantize_floats,
    round_floats,
)
from delegraph_numba_cpu.codegen.conv_hybrid_micro_kernels import (
    SHORT,
    bytes_narrow,
    bytes_short,
    bytes_single,
    bytes_wide,
    nibbles_short,
    nibbles_single,
    nibbles_wide,
    parts_short,
    parts_single,
    parts_wide,
)
from delegraph_numba_cpu.codegen.conv_int8_micro_kernels import NARROW_TALL, SINGLE, WIDE, WIDE_TALL
from delegraph_numba_cpu.codegen.intrinsics import (
    copy_bytes,
    jit,
    load_f32,
    load_i32,
    real,
    store_f32,
    store_i32,
    store_i64,
    word,
)
from delegraph_numba_cpu.codegen.registry import kernel
from delegraph_numba_cpu.instructions import conv_hybrid as instructions
from delegraph_numba_cpu.instructions import conv_int8
from delegraph_numba_cpu.kernels.conv_hybrid_quantization import parameters
from delegraph_numba_cpu.kernels.conv_int8_pixels import gather_pixels
from delegraph_numba_cpu.kernels.conv_int8_windows import ROW_BYTES, ZERO

HEADER_BYTES, GROUP_BYTES = instructions.HEADER_BYTES, instructions.GROUP_BYTES
ACC_BYTES = conv_int8.ACC_BYTES
WINDOWS_BYTES = 8 * len(conv_int8.WINDOWS.names)
WINDOWED = instructions.WINDOWED
BYTES, NIBBLES, IN_PARTS = instructions.BYTES, instructions.NIBBLES, instructions.PARTS

M_X, M_RANGES, M_ROWS, M_SIZE, M_PIECES, M_TILES = instructions.MEASURE.slots(
    *instructions.MEASURE.names
)
(
    Q_X, Q_Y, Q_RANGES, Q_SCALES, Q_ROWS, Q_SIZE, Q_PIECES, Q_ROW_BYTES, Q_IS_ASYMMETRIC, Q_TILES,
) = instructions.QUANTIZE.slots(*instructions.QUANTIZE.names)  # fmt: skip
R_X, R_Y, R_RANGES, R_ROWS, R_SIZE, R_PIECES, R_TILES = instructions.ROUND.slots(
    *instructions.ROUND.names
)
(
    X, Y, SCALES, WINDOWS, WEIGHTS, HEADERS, BLOCK_BYTES, FORM, PARTS, STEPS, OUTPUTS, LAYOUT, STEP,
    ROW_TILES, COLUMN_TILES, PIXELS, IMAGE_PIXELS, LOW, HIGH, SCRATCH, SCRATCH_BYTES,
) = instructions.MULTIPLY.slots(*instructions.MULTIPLY.names)  # fmt: skip


@kernel(instructions.MEASURE)
def measure(record, tile, worker):
    """Store the smallest and the largest value, 0 included, of each of this tile's pieces of rows.

    Both are NaN for a piece with a value that is not finite.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    size, pieces, tiles = word(record, M_SIZE), word(record, M_PIECES), word(record, M_TILES)
    units, length = word(record, M_ROWS) * pieces, piece_length(size, pieces)
    for unit in range(units * tile // tiles, units * (tile + 1) // tiles):
        first = unit % pieces * length
        source = word(record, M_X) + 4 * (unit // pieces * size + first)
        measure_floats(source, min(length, size - first), word(record, M_RANGES) + 8 * unit)


@jit
def piece_length(size, pieces):
    """Return the length of all pieces of a row except the last; it is a multiple of a vector's."""
    return (-(-size // pieces) + 63) // 64 * 64


@kernel(instructions.QUANTIZE)
def quantize(record, tile, worker):
    """Quantise this tile's pieces of rows to bytes.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    size, pieces, tiles = word(record, Q_SIZE), word(record, Q_PIECES), word(record, Q_TILES)
    units, length = word(record, Q_ROWS) * pieces, piece_length(size, pieces)
    for unit in range(units * tile // tiles, units * (tile + 1) // tiles):
        row, piece = unit // pieces, unit % pieces
        scale, inverse, zero, least = row_parameters(
            word(record, Q_RANGES), row, pieces, word(record, Q_IS_ASYMMETRIC)
        )
        if piece == 0:
            store_f32(word(record, Q_SCALES) + 8 * row, scale)
            store_i32(word(record, Q_SCALES) + 8 * row + 4, zero)
        first = piece * length
        quantize_floats(
            word(record, Q_X) + 4 * (row * size + first),
            min(length, size - first),
            inverse,
            np.float32(least - zero),
            np.float32(127 - zero),
            zero + 128,
            word(record, Q_Y) + row * word(record, Q_ROW_BYTES) + first,
        )


@kernel(instructions.ROUND)
def round_rows(record, tile, worker):
    """Round the floats of this tile's pieces of rows to values that quantisation can represent.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    size, pieces, tiles = word(record, R_SIZE), word(record, R_PIECES), word(record, R_TILES)
    units, length = word(record, R_ROWS) * pieces, piece_length(size, pieces)
    for unit in range(units * tile // tiles, units * (tile + 1) // tiles):
        row, first = unit // pieces, unit % pieces * length
        scale, inverse, zero, least = row_parameters(word(record, R_RANGES), row, pieces, 1)
        offset = 4 * (row * size + first)
        round_floats(
            word(record, R_X) + offset,
            min(length, size - first),
            inverse,
            np.float32(least - zero),
            np.float32(127 - zero),
            scale,
            word(record, R_Y) + offset,
        )


@jit
def row_parameters(ranges, row, pieces, is_asymmetric):
    """Return the quantization of a row from the ranges of its pieces; see :func:`parameters`.

    Args:
        ranges: address of the smallest and largest value of each piece.
        row: number of the row.
        pieces: number of pieces of a row.
        is_asymmetric: whether the row gets a zero point.
    """
    low, high, unsound = np.float32(0), np.float32(0), np.float32(0)
    for place in range(ranges + 8 * row * pieces, ranges + 8 * (row + 1) * pieces, 8):
        unsound += load_f32(place) * np.float32(0)  # a NaN stays NaN whatever is added
        low, high = min(low, load_f32(place)), max(high, load_f32(place + 4))
    return parameters(low + unsound, high + unsound, is_asymmetric)


@kernel(instructions.MULTIPLY)
def multiply(record, tile, worker):
    """Compute this tile's range of output pixels and of blocks of outputs.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    row_tiles, column_tiles = word(record, ROW_TILES), word(record, COLUMN_TILES)
    row_tile, column_tile = tile // column_tiles, tile % column_tiles
    pixels, outputs = word(record, PIXELS), word(record, OUTPUTS)
    groups = (outputs + 63) // 64
    last_column = min(groups * (column_tile + 1) // column_tiles * 4, (outputs + 15) // 16)
    multiply_pixels(
        record,
        pixels * row_tile // row_tiles,
        pixels * (row_tile + 1) // row_tiles,
        groups * column_tile // column_tiles * 4,
        last_column,
        word(record, SCRATCH) + worker * word(record, SCRATCH_BYTES),
    )


@jit
def multiply_pixels(record, first, last, first_column, last_column, memory):
    """Compute some output pixels, for a range of blocks of 16 outputs.

    Scratch memory holds accumulators (and, before they are in use, padded lines), the record of the
    windows, and windows.

    Args:
        record: address of the kernel call's operands.
        first: number of the first pixel.
        last: number of the pixel after the last one.
        first_column: number of the first block of 16 outputs.
        last_column: number of the block after the last one.
        memory: address of this thread's scratch memory.
    """
    step, image_pixels = word(record, STEP), word(record, IMAGE_PIXELS)
    windows, rows_at = memory + ACC_BYTES, memory + ACC_BYTES + 256
    copy_bytes(windows, word(record, WINDOWS), WINDOWS_BYTES)
    row_bytes, outputs = word(windows, ROW_BYTES), word(record, OUTPUTS)
    while first < last:
        count, image = min(step, last - first), first // image_pixels
        scales, scale_step = word(record, SCALES) + 8 * image, 8
        if image_pixels > 1:
            count, scale_step = min(count, (image + 1) * image_pixels - first), 0
        a = word(record, X) + first * row_bytes
        if word(record, LAYOUT) == WINDOWED:
            if image_pixels == 1:
                count = 1
            store_i64(windows + 8 * ZERO, load_i32(scales + 4) + 128)
            gather_pixels(word(record, X), windows, first, count, rows_at, memory)
            a = rows_at
        target = word(record, Y) + 4 * first * outputs
        for n in range(first_column, last_column, 4):
            blocks_of_16 = min(last_column - n, 4)
            multiply_group(
                record, a, row_bytes, count, n, blocks_of_16, scales, scale_step, target, memory
            )
        first += count


@jit
def multiply_group(record, a, row_bytes, rows, n, blocks_of_16, scales, scale_step, target, acc):
    """Compute and store float32 results of some rows of bytes and up to four blocks of 16 outputs.

    Micro-kernels read a fixed number of rows, at most ``ROWS``. If there are fewer, the memory
    after the last row is read as well, but no results are stored for it.

    Args:
        record: address of the kernel call's operands.
        a: address of the first row, of unsigned bytes.
        row_bytes: bytes from one row to the next.
        rows: number of rows.
        n: number of the first block.
        blocks_of_16: number of blocks.
        scales: address of the first row's scale and zero point.
        scale_step: bytes from one row's scale to the next.
        target: address of the first row of results.
        acc: address of scratch memory for the accumulators, ``[ROWS, 64]`` of 4 bytes.
    """
    headers, start = word(record, HEADERS) + n * HEADER_BYTES, 0
    while start < rows:
        height = tile_height(record, rows - start, blocks_of_16)
        m = max(min(start, rows - height), 0)
        accumulate(record, a + m * row_bytes, row_bytes, height, n, blocks_of_16, headers, acc)
        for j in range(blocks_of_16):
            columns = word(record, OUTPUTS) - 16 * (n + j)
            finish = (
                acc + 64 * j, GROUP_BYTES, min(height, rows), headers + j * HEADER_BYTES,
                scales + m * scale_step, scale_step,
                target + 4 * (m * word(record, OUTPUTS) + 16 * (n + j)), 4 * word(record, OUTPUTS),
                columns, real(record, LOW), real(record, HIGH),
            )  # fmt: skip
            if word(record, FORM) == IN_PARTS:
                finish_parts(*finish)
            else:
                finish_floats(*finish)
        start += height


@jit
def tile_height(record, rows, blocks_of_16):
    """Return the number of rows of the next micro-kernel, which may be more than remain.

    Args:
        record: address of the kernel call's operands.
        rows: number of rows that remain.
        blocks_of_16: number of blocks of 16 outputs.
    """
    if rows == 1:
        return 1
    if rows <= SHORT:
        return SHORT
    return NARROW_TALL if word(record, FORM) == BYTES and blocks_of_16 == 1 else WIDE_TALL


@jit
def accumulate(record, a, row_bytes, height, n, blocks_of_16, headers, acc):
    """Store the accumulators that micro-kernels compute for some rows and blocks of 16 outputs.

    Args:
        record: address of the kernel call's operands.
        a: address of the first row of bytes.
        row_bytes: bytes from one row to the next.
        height: number of rows that the micro-kernel computes.
        n: number of the first block.
        blocks_of_16: number of blocks.
        headers: address of the first block's header.
        acc: address of the accumulators.
    """
    weights = word(record, WEIGHTS) + n * word(record, BLOCK_BYTES)
    form, parts, steps = word(record, FORM), word(record, PARTS), word(record, STEPS)
    for j in range(0, blocks_of_16, SINGLE if height == 1 else WIDE):
        tile = (
            a, row_bytes, weights, j, parts, steps, headers + j * HEADER_BYTES, acc + 64 * j
        )  # fmt: skip
        if height == 1:
            if form == BYTES:
                bytes_single(*tile)
            elif form == NIBBLES:
                nibbles_single(*tile)
            else:
                parts_single(*tile)
        elif height == SHORT:
            if form == BYTES:
                bytes_short(*tile)
            elif form == NIBBLES:
                nibbles_short(*tile)
            else:
                parts_short(*tile)
        elif form == BYTES:
            if blocks_of_16 == 1:
                bytes_narrow(*tile)
            else:
                bytes_wide(*tile)
        elif form == NIBBLES:
            nibbles_wide(*tile)
        else:
            parts_wide(*tile)
