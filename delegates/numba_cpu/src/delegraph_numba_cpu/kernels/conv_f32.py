"""Convolutions of float32 images: which pixels and taps the micro-kernels get.

One driver serves all: a tile's output rows are worked on in chunks; the addresses of a chunk's
pixels are written to a table, once, and used for every column of the result. Where windows reach
over the image's edge, the chunk's input rows are copied between zeros first.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from delegraph_numba_cpu.blocks import conv_f32 as blocks
from delegraph_numba_cpu.kernels.machine import (
    copy_bytes,
    fill_bytes,
    jit,
    load_f32,
    load_i64,
    store_f32,
    store_i64,
    word,
)
from delegraph_numba_cpu.kernels.product_ir import channel_product, matrix_product
from delegraph_numba_cpu.kernels.registry import kernel
from delegraph_numba_cpu.kernels.vector_ir import LANES

HEIGHT = {16: 7, 8: 6, 4: 4}[LANES]
"""Pixels of a tile of registers."""

NARROW, MIDDLE, WIDE = LANES, LANES + LANES // 2, 2 * LANES
"""Columns of the three tiles: two registers, one and a half, one."""

wide = matrix_product(HEIGHT, (LANES, LANES))
middle = matrix_product(HEIGHT, (LANES, LANES // 2))
narrow = matrix_product(HEIGHT, (LANES,))
wide_row = matrix_product(1, (LANES, LANES))
middle_row = matrix_product(1, (LANES, LANES // 2))
narrow_row = matrix_product(1, (LANES,))
channels = channel_product(HEIGHT, LANES, masked=False)
some_channels = channel_product(HEIGHT, LANES, masked=True)

X, Y, WEIGHT, RESIDUAL, SCRATCH, SCRATCH_BYTES, ROWS_AT, PADDED_AT = blocks.CONV.slots(
    "x", "y", "weight", "residual", "scratch", "scratch_bytes", "rows_at", "padded_at"
)
IMAGES, IN_IMAGE, IN_ROW, IN_H, OUT_IMAGE, OUT_ROW, OUT_H, OUT_W = blocks.CONV.slots(
    "images", "in_image", "in_row", "in_h", "out_image", "out_row", "out_h", "out_w"
)
ROW, STRIDE_ROW, STRIDE_COLUMN, TAP_ROWS, TAP_COLUMNS, TAP_ROW, TAP_COLUMN = blocks.CONV.slots(
    "row", "stride_row", "stride_column", "tap_rows", "tap_columns", "tap_row", "tap_column"
)
TOP, LEFT, COPIED, STRIDE_H, SPAN, CHUNK = blocks.CONV.slots(
    "top", "left", "copied", "stride_h", "span", "chunk"
)
COLUMNS, PITCH, LOW, COLUMN_TILES, TILES, TAP_BYTES = blocks.CONV.slots(
    "columns", "pitch", "low", "column_tiles", "tiles", "tap_bytes"
)


@kernel(blocks.CONV)
def conv(block, tile, worker):
    """Compute a tile of a convolution."""
    column_tiles = word(block, COLUMN_TILES)
    part, tile = tile % column_tiles, tile // column_tiles
    row, last = row_range(block, tile)
    scratch = own_scratch(block, worker)
    rows = scratch + word(block, ROWS_AT)
    write_taps(block, scratch)
    while row < last:
        count = chunk_rows(block, row, last)
        write_pixels(block, rows, chunk_source(block, scratch, row, count), count)
        first, end = column_range(block, part)
        for column in range(first, end, WIDE):
            multiply(block, rows, scratch, count * word(block, OUT_W), column, row)
        row += count


@jit
def multiply(block, rows, taps, pixels, column, row):
    """Compute up to ``WIDE`` columns of pixels from the first of an output row on."""
    offset = output_offset(block, row)
    residual = word(block, RESIDUAL)
    if residual:
        residual += offset
    multiply_to(block, rows, taps, pixels, column, word(block, Y) + offset, residual)


@jit
def multiply_to(block, rows, taps, pixels, column, out, residual):
    """Compute up to ``WIDE`` columns of pixels at an address."""
    tap_count, tap_bytes = word(block, TAP_ROWS) * word(block, TAP_COLUMNS), word(block, TAP_BYTES)
    if residual:
        residual += 4 * column
    matrix(
        rows,
        taps,
        tap_count,
        tap_bytes,
        word(block, WEIGHT) + column * (tap_count * tap_bytes + 4),
        out + 4 * column,
        residual,
        word(block, PITCH),
        pixels,
        word(block, COLUMNS) - column,
        block + 8 * LOW,
    )


@jit
def matrix(rows, taps, count, size, weight, out, residual, pitch, pixels, columns, limits):
    """Write up to ``WIDE`` columns of any number of pixels; see ``matrix_product``."""
    if pixels == 1:
        if columns > MIDDLE:
            wide_row(rows, taps, count, size, weight, out, residual, pitch, pixels, columns, limits)
        elif columns > NARROW:
            middle_row(
                rows, taps, count, size, weight, out, residual, pitch, pixels, columns, limits
            )
        else:
            narrow_row(
                rows, taps, count, size, weight, out, residual, pitch, pixels, columns, limits
            )
        return
    step = HEIGHT * pitch if residual else 0
    while pixels > 0:
        if columns > MIDDLE:
            wide(rows, taps, count, size, weight, out, residual, pitch, pixels, columns, limits)
        elif columns > NARROW:
            middle(rows, taps, count, size, weight, out, residual, pitch, pixels, columns, limits)
        else:
            narrow(rows, taps, count, size, weight, out, residual, pitch, pixels, columns, limits)
        rows += 8 * HEIGHT
        out += HEIGHT * pitch
        residual += step
        pixels -= HEIGHT


@kernel(blocks.DEPTHWISE)
def depthwise(block, tile, worker):
    """Compute a tile of a depthwise convolution."""
    column_tiles = word(block, COLUMN_TILES)
    part, tile = tile % column_tiles, tile // column_tiles
    row, last = row_range(block, tile)
    scratch = own_scratch(block, worker)
    rows = scratch + word(block, ROWS_AT)
    write_taps(block, scratch)
    blocks = (word(block, COLUMNS) + LANES - 1) // LANES
    while row < last:
        count = chunk_rows(block, row, last)
        write_pixels(block, rows, chunk_source(block, scratch, row, count), count)
        out = word(block, Y) + output_offset(block, row)
        pixels = count * word(block, OUT_W)
        for i in range(blocks * part // column_tiles, blocks * (part + 1) // column_tiles):
            filter_channels(block, rows, scratch, pixels, i * LANES, out)
        row += count


@jit
def filter_channels(block, rows, taps, pixels, channel, out):
    """Compute up to ``LANES`` channels of pixels at an address."""
    count = word(block, TAP_ROWS) * word(block, TAP_COLUMNS)
    each_channel(
        rows,
        taps,
        count,
        4 * channel,
        word(block, WEIGHT) + 4 * channel * (count + 1),
        out + 4 * channel,
        word(block, PITCH),
        pixels,
        word(block, COLUMNS) - channel,
        block + 8 * LOW,
    )


@jit
def each_channel(rows, taps, count, channel, weight, out, pitch, pixels, columns, limits):
    """Write up to ``LANES`` channels of any number of pixels; see ``channel_product``."""
    while pixels > 0:
        if columns >= LANES:
            channels(rows, taps, count, channel, weight, out, 0, pitch, pixels, columns, limits)
        else:
            some_channels(
                rows, taps, count, channel, weight, out, 0, pitch, pixels, columns, limits
            )
        rows += 8 * HEIGHT
        out += HEIGHT * pitch
        pixels -= HEIGHT


@jit
def own_scratch(block, worker):
    """Return the worker's piece of scratch memory."""
    return word(block, SCRATCH) + worker * word(block, SCRATCH_BYTES)


@jit
def column_range(block, part):
    """Return first and end of a part of the columns, in whole blocks of ``WIDE``."""
    blocks, parts = (word(block, COLUMNS) + WIDE - 1) // WIDE, word(block, COLUMN_TILES)
    return blocks * part // parts * WIDE, blocks * (part + 1) // parts * WIDE


@jit
def row_range(block, tile):
    """Return first and end of a tile's output rows, counted over all images."""
    tiles = word(block, TILES) // word(block, COLUMN_TILES)
    rows = word(block, IMAGES) * word(block, OUT_H)
    return rows * tile // tiles, rows * (tile + 1) // tiles


@jit
def chunk_rows(block, row, last):
    """Return how many rows from *row* on are done together: of one image, and no more than fit."""
    count = min(word(block, CHUNK), last - row)
    return min(count, word(block, OUT_H) - row % word(block, OUT_H))


@jit
def output_offset(block, row):
    """Return the offset of an output row, counted over all images."""
    image = row // word(block, OUT_H)
    return image * word(block, OUT_IMAGE) + (row % word(block, OUT_H)) * word(block, OUT_ROW)


@jit
def chunk_source(block, scratch, row, count):
    """Return the address of the first tap of a chunk's first pixel; pads input rows if needed."""
    image, y = row // word(block, OUT_H), row % word(block, OUT_H)
    source = word(block, X) + image * word(block, IN_IMAGE)
    first = y * word(block, STRIDE_H) - word(block, TOP)
    if word(block, PADDED_AT) == 0:
        return source + first * word(block, IN_ROW)
    target = scratch + word(block, PADDED_AT)
    rows = (count - 1) * word(block, STRIDE_H) + word(block, SPAN)
    for i in range(rows):
        pad_row(block, source, first + i, target + i * word(block, ROW))
    return target


@jit
def pad_row(block, source, y, target):
    """Write one row of the padded input: of zeros outside the image."""
    size, left, copied = word(block, ROW), word(block, LEFT), word(block, COPIED)
    if y < 0 or y >= word(block, IN_H):
        fill_bytes(target, 0, size)
        return
    fill_bytes(target, 0, left)
    copy_bytes(target + left, source + y * word(block, IN_ROW), copied)
    fill_bytes(target + left + copied, 0, size - left - copied)


@jit
def write_taps(block, table):
    """Write the offset of each tap from a window's first."""
    columns = word(block, TAP_COLUMNS)
    for i in range(word(block, TAP_ROWS)):
        for j in range(columns):
            offset = i * word(block, TAP_ROW) + j * word(block, TAP_COLUMN)
            store_i64(table + 8 * (i * columns + j), offset)


@jit
def write_pixels(block, table, source, count):
    """Write the address of each pixel's first tap, and copies of the last for a tile's rest."""
    down, right = word(block, STRIDE_ROW), word(block, STRIDE_COLUMN)
    width = word(block, OUT_W)
    for _ in range(count):
        address = source
        for _ in range(width):
            store_i64(table, address)
            table += 8
            address += right
        source += down
    last = load_i64(table - 8)
    for _ in range(HEIGHT - 1):
        store_i64(table, last)
        table += 8


EXPAND = 8 * blocks.INVERTED_RESIDUAL.slots("expand_x")[0]
PROJECT = 8 * blocks.INVERTED_RESIDUAL.slots("project_x")[0]
RING, RING_ROWS, RESULT_AT = blocks.INVERTED_RESIDUAL.slots("ring", "ring_rows", "result_at")


@kernel(blocks.INVERTED_RESIDUAL)
def inverted_residual(block, tile, worker):
    """Compute a tile of expand, depthwise and project; expanded rows live in a ring."""
    project = block + PROJECT
    row, last = row_range(block, tile)
    scratch, project_rows = own_scratch(block, worker), own_scratch(project, worker)
    project_taps = project_rows
    project_rows += word(project, ROWS_AT)
    ring = word(block, RING) + worker * (word(block, RING_ROWS) + 1) * word(block, ROW)
    result = scratch + word(block, RESULT_AT)
    write_pixels(block, scratch + word(block, ROWS_AT), 0, 1)
    if word(block + EXPAND, WEIGHT):
        write_taps(block + EXPAND, own_scratch(block + EXPAND, worker))
    write_taps(project, project_taps)
    clear_edges(block, ring)
    image, following = -1, 0
    while row < last:
        count = chunk_rows(block, row, last)
        y = row % word(block, OUT_H) * word(block, STRIDE_H) - word(block, TOP)
        if row // word(block, OUT_H) != image:
            image, following = row // word(block, OUT_H), 0
        end = min(y + (count - 1) * word(block, STRIDE_H) + word(block, SPAN), word(block, IN_H))
        following = max(following, y)
        if following < end:
            fill_ring(block, ring, worker, image * word(block, IN_H), following, end)
            following = end
        write_ring_taps(block, scratch, ring, y, count)
        filter_rows(block, scratch, result, count)
        write_pixels(project, project_rows, result, count)
        for column in range(0, word(project, COLUMNS), WIDE):
            multiply(project, project_rows, project_taps, count * word(block, OUT_W), column, row)
        row += count


@jit
def clear_edges(block, ring):
    """Write the zeros beside the rows of the ring, and the row of zeros behind them."""
    left, size = word(block, LEFT), word(block, ROW)
    right = left + word(block, COPIED)
    for i in range(word(block, RING_ROWS)):
        fill_bytes(ring + i * size, 0, left)
        fill_bytes(ring + i * size + right, 0, size - right)
    fill_bytes(ring + word(block, RING_ROWS) * size, 0, size)


@jit
def fill_ring(block, ring, worker, base, first, end):
    """Compute or copy expanded rows; *base* rows are those of the images before."""
    expand = block + EXPAND
    if word(expand, WEIGHT) == 0:
        for y in range(first, end):
            source = word(expand, X) + (base + y) * word(expand, IN_ROW)
            copy_bytes(ring_row(block, ring, y) + word(block, LEFT), source, word(block, COPIED))
        return
    scratch = own_scratch(expand, worker)
    rows, width = scratch + word(expand, ROWS_AT), word(expand, OUT_W)
    room = 8 * (width + HEIGHT)
    source = chunk_source(expand, scratch, base + first, end - first)
    for y in range(first, end):
        write_pixels(expand, rows + (y - first) * room, source, 1)
        source += word(expand, STRIDE_ROW)
    for column in range(0, word(expand, COLUMNS), WIDE):
        for y in range(first, end):
            out = ring_row(block, ring, y) + word(block, LEFT)
            multiply_to(expand, rows + (y - first) * room, scratch, width, column, out, 0)


@jit
def ring_row(block, ring, y):
    """Return where an expanded row is."""
    return ring + y % word(block, RING_ROWS) * word(block, ROW)


@jit
def write_ring_taps(block, table, ring, y, count):
    """Write the address of each tap of each output row's first pixel."""
    down, columns = word(block, TAP_ROW), word(block, TAP_COLUMNS)
    for _ in range(count):
        for i in range(word(block, TAP_ROWS)):
            source = y + i * down
            if source < 0 or source >= word(block, IN_H):
                address = ring + word(block, RING_ROWS) * word(block, ROW)
            else:
                address = ring_row(block, ring, source)
            for _ in range(columns):
                store_i64(table, address)
                table += 8
                address += word(block, TAP_COLUMN)
        y += word(block, STRIDE_H)


@jit
def filter_rows(block, taps, result, count):
    """Compute the depthwise rows of a chunk."""
    rows, width = taps + word(block, ROWS_AT), word(block, OUT_W)
    room = 8 * word(block, TAP_ROWS) * word(block, TAP_COLUMNS)
    for channel in range(0, word(block, COLUMNS), LANES):
        for i in range(count):
            out = result + i * width * word(block, PITCH)
            filter_channels(block, rows, taps + i * room, width, channel, out)


XS, YS, VALUES, TIMES, PARTS = blocks.REPEAT.slots("x", "y", "values", "times", "tiles")


@kernel(blocks.REPEAT)
def repeat_channels(block, tile, worker):
    """Write each value several times."""
    values, tiles, times = word(block, VALUES), word(block, PARTS), word(block, TIMES)
    first, last = values * tile // tiles, values * (tile + 1) // tiles
    target = word(block, YS) + 4 * first * times
    for i in range(first, last):
        value = load_f32(word(block, XS) + 4 * i)
        for _ in range(times):
            store_f32(target, value)
            target += 4
