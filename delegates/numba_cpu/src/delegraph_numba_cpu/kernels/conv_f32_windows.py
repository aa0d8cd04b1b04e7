"""Addresses of pixels and taps for the micro-kernels of float32 images.

A tile's output rows are computed in chunks. The addresses of a chunk's pixels are written to a
table once, and used for every column of the result. If windows reach over the image's edge, the
chunk's input rows are first copied, with zeros around them.
"""

from __future__ import annotations

from delegraph_numba_cpu.codegen.intrinsics import (
    copy_bytes,
    fill_bytes,
    jit,
    load_i64,
    store_i64,
    word,
)
from delegraph_numba_cpu.codegen.vector_ir import LANES
from delegraph_numba_cpu.instructions import conv_f32 as instructions

HEIGHT = instructions.HEIGHTS[4 * LANES]
"""Number of pixels of a register tile."""

X, Y, WEIGHT, RESIDUAL, SCRATCH, SCRATCH_BYTES, ROWS_AT, PADDED_AT = instructions.CONV.slots(
    "x", "y", "weight", "residual", "scratch", "scratch_bytes", "rows_at", "padded_at"
)
IMAGES, IN_IMAGE, IN_ROW, IN_H, OUT_IMAGE, OUT_ROW, OUT_H, OUT_W = instructions.CONV.slots(
    "images", "in_image", "in_row", "in_h", "out_image", "out_row", "out_h", "out_w"
)
ROW, STRIDE_ROW, STRIDE_COLUMN, TAP_ROWS, TAP_COLUMNS, TAP_ROW, TAP_COLUMN = (
    instructions.CONV.slots(
        "row", "stride_row", "stride_column", "tap_rows", "tap_columns", "tap_row", "tap_column"
    )
)
TOP, LEFT, COPIED, STRIDE_H, SPAN, CHUNK = instructions.CONV.slots(
    "top", "left", "copied", "stride_h", "span", "chunk"
)
COLUMNS, PITCH, LOW, COLUMN_TILES, TILES, TAP_BYTES, WEIGHT_IMAGE = instructions.CONV.slots(
    "columns", "pitch", "low", "column_tiles", "tiles", "tap_bytes", "weight_image"
)
RESIDUAL_PITCH, SLOPES = instructions.CONV.slots("residual_pitch", "slopes")


@jit
def own_scratch(record, worker):
    """Return the address of the scratch memory of *worker*.

    *record* is the address of the convolution's operands.
    """
    return word(record, SCRATCH) + worker * word(record, SCRATCH_BYTES)


@jit
def row_range(record, tile):
    """Return a tile's first output row, and the row after its last, counted over all images.

    Args:
        record: address of the convolution's operands.
        tile: number of the part of the rows.
    """
    tiles = word(record, TILES) // word(record, COLUMN_TILES)
    rows = word(record, IMAGES) * word(record, OUT_H)
    return rows * tile // tiles, rows * (tile + 1) // tiles


@jit
def chunk_rows(record, row, last):
    """Return the number of output rows, all of one image, in the next chunk.

    Args:
        record: address of the convolution's operands.
        row: number of the chunk's first output row, counted over all images.
        last: number of the row after the tile's last.
    """
    count = min(word(record, CHUNK), last - row)
    return min(count, word(record, OUT_H) - row % word(record, OUT_H))


@jit
def output_offset(record, row):
    """Return the offset in bytes of an output row; *row* is counted over all images.

    *record* is the address of the convolution's operands.
    """
    image = row // word(record, OUT_H)
    return image * word(record, OUT_IMAGE) + (row % word(record, OUT_H)) * word(record, OUT_ROW)


@jit
def chunk_source(record, scratch, row, count):
    """Return the address of the first tap of a chunk's first pixel; pad the input rows if needed.

    Args:
        record: address of the convolution's operands.
        scratch: address of this thread's scratch memory.
        row: number of the chunk's first output row, counted over all images.
        count: number of output rows.
    """
    image, y = row // word(record, OUT_H), row % word(record, OUT_H)
    source = word(record, X) + image * word(record, IN_IMAGE)
    first = y * word(record, STRIDE_H) - word(record, TOP)
    if word(record, PADDED_AT) == 0:
        return source + first * word(record, IN_ROW)
    target = scratch + word(record, PADDED_AT)
    rows = (count - 1) * word(record, STRIDE_H) + word(record, SPAN)
    for i in range(rows):
        pad_row(record, source, first + i, target + i * word(record, ROW))
    return target


@jit
def pad_row(record, source, y, target):
    """Write one input row with its padding; a row outside of the image is all zeros.

    Args:
        record: address of the convolution's operands.
        source: address of the image.
        y: number of the row, negative or too large for a row outside.
        target: address to which the padded row is written.
    """
    size, left, copied = word(record, ROW), word(record, LEFT), word(record, COPIED)
    if y < 0 or y >= word(record, IN_H):
        fill_bytes(target, 0, size)
        return
    fill_bytes(target, 0, left)
    copy_bytes(target + left, source + y * word(record, IN_ROW), copied)
    fill_bytes(target + left + copied, 0, size - left - copied)


@jit
def write_taps(record, table):
    """Write to *table* the offset in bytes of each tap of a window from the first tap.

    *record* is the address of the convolution's operands.
    """
    columns = word(record, TAP_COLUMNS)
    for i in range(word(record, TAP_ROWS)):
        for j in range(columns):
            offset = i * word(record, TAP_ROW) + j * word(record, TAP_COLUMN)
            store_i64(table + 8 * (i * columns + j), offset)


@jit
def write_pixels(record, table, source, count):
    """Write a table with the address of the first tap of each pixel in *count* output rows.

    The last address is written ``HEIGHT`` times more, so that the last register tile is full, even
    if it has one pixel more than ``HEIGHT``.

    *record* is the address of the convolution's operands, *table* that of the table, and *source*
    that of the first pixel's first tap.
    """
    down, right = word(record, STRIDE_ROW), word(record, STRIDE_COLUMN)
    width = word(record, OUT_W)
    for _ in range(count):
        address = source
        for _ in range(width):
            store_i64(table, address)
            table += 8
            address += right
        source += down
    last = load_i64(table - 8)
    for _ in range(HEIGHT):
        store_i64(table, last)
        table += 8
