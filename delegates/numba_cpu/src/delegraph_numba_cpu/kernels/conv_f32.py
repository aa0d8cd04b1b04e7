"""Convolutions of float32 images: which pixels and taps the micro-kernels get.

One driver serves all: a tile's output rows are worked on in chunks; the addresses of a chunk's
pixels are written to a table, once, and used for every column of the result. Where windows reach
over the image's edge, the chunk's input rows are copied between zeros first.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from delegraph_numba_cpu.blocks import conv_f32 as blocks
from delegraph_numba_cpu.kernels import product_ir
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
from delegraph_numba_cpu.kernels.registry import kernel
from delegraph_numba_cpu.kernels.vector_ir import LANES

HEIGHT = {16: 7, 8: 6, 4: 4}[LANES]
"""Pixels of a tile of registers."""

NARROW, MIDDLE, WIDE = LANES, LANES + LANES // 2, 2 * LANES
"""Columns of the three tiles: two registers, one and a half, one."""

wide = product_ir.matrix_product(HEIGHT, (LANES, LANES))
middle = product_ir.matrix_product(HEIGHT, (LANES, LANES // 2))
narrow = product_ir.matrix_product(HEIGHT, (LANES,))
wide_row = product_ir.matrix_product(1, (LANES, LANES))
middle_row = product_ir.matrix_product(1, (LANES, LANES // 2))
narrow_row = product_ir.matrix_product(1, (LANES,))
four_blocks = product_ir.blocks_product(4, LANES)
channels = product_ir.channel_product(HEIGHT, LANES, masked=False)
some_channels = product_ir.channel_product(HEIGHT, LANES, masked=True)

three = product_ir.row_product(HEIGHT, LANES, kernel=3, stride=1)
three_by_two = product_ir.row_product(HEIGHT, LANES, kernel=3, stride=2)
five = product_ir.row_product(HEIGHT, LANES, kernel=5, stride=1)
five_by_two = product_ir.row_product(HEIGHT, LANES, kernel=5, stride=2)

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
COLUMNS, PITCH, LOW, COLUMN_TILES, TILES, TAP_BYTES, WEIGHT_IMAGE = blocks.CONV.slots(
    "columns", "pitch", "low", "column_tiles", "tiles", "tap_bytes", "weight_image"
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
        if count * word(block, OUT_W) == 1 and word(block, RESIDUAL) == 0:
            first = multiply_blocks(block, rows, scratch, first, end, row)
        for column in range(first, end, WIDE):
            multiply(block, rows, scratch, count * word(block, OUT_W), column, row)
        row += count


@jit
def multiply_blocks(block, rows, taps, column, end, row):
    """Compute columns of one pixel, four blocks at a time; return the first that is left."""
    count, size = word(block, TAP_ROWS) * word(block, TAP_COLUMNS), word(block, TAP_BYTES)
    weight = word(block, WEIGHT) + row // word(block, OUT_H) * word(block, WEIGHT_IMAGE)
    out = word(block, Y) + output_offset(block, row)
    apart = count * size + 4
    end = min(end, word(block, COLUMNS))
    while column + 4 * WIDE <= end:
        # fmt: off
        four_blocks(rows, taps, count, size, weight + column * apart, WIDE * apart,
                    out + 4 * column, block + 8 * LOW)
        # fmt: on
        column += 4 * WIDE
    return column


@jit
def multiply(block, rows, taps, pixels, column, row):
    """Compute up to ``WIDE`` columns of pixels from the first of an output row on."""
    offset = output_offset(block, row)
    residual = word(block, RESIDUAL)
    if residual:
        residual += offset
    weight = word(block, WEIGHT) + row // word(block, OUT_H) * word(block, WEIGHT_IMAGE)
    multiply_to(block, rows, taps, pixels, column, weight, word(block, Y) + offset, residual)


@jit
def multiply_to(block, rows, taps, pixels, column, weight, out, residual):
    """Compute up to ``WIDE`` columns of pixels at an address."""
    tap_count, tap_bytes = word(block, TAP_ROWS) * word(block, TAP_COLUMNS), word(block, TAP_BYTES)
    if residual:
        residual += 4 * column
    matrix(
        rows,
        taps,
        tap_count,
        tap_bytes,
        weight + column * (tap_count * tap_bytes + 4),
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
    if pixels == 1:  # reads weights as fast as they come
        one_row(rows, taps, count, size, weight, out, residual, pitch, pixels, columns, limits)
        return
    ahead = weight + WIDE * (count * size + 4)
    near = max(1, 4 * WIDE * HEIGHT // pixels)
    step = HEIGHT * pitch if residual else 0
    # fmt: off
    while pixels > 0:
        if columns > MIDDLE:
            wide(rows, taps, count, size, weight, ahead, near, out, residual, pitch, pixels,
                 columns, limits)
        elif columns > NARROW:
            middle(rows, taps, count, size, weight, ahead, near, out, residual, pitch, pixels,
                   columns, limits)
        else:
            narrow(rows, taps, count, size, weight, ahead, near, out, residual, pitch, pixels,
                   columns, limits)
        # fmt: on
        ahead += near * count * size // 4
        rows += 8 * HEIGHT
        out += HEIGHT * pitch
        residual += step
        pixels -= HEIGHT


@jit
def one_row(rows, taps, count, size, weight, out, residual, pitch, pixels, columns, limits):
    """Write up to ``WIDE`` columns of one pixel."""
    # fmt: off
    if columns > MIDDLE:
        wide_row(rows, taps, count, size, weight, weight, 0, out, residual, pitch, pixels,
                 columns, limits)
    elif columns > NARROW:
        middle_row(rows, taps, count, size, weight, weight, 0, out, residual, pitch, pixels,
                   columns, limits)
    else:
        narrow_row(rows, taps, count, size, weight, weight, 0, out, residual, pitch, pixels,
                   columns, limits)
    # fmt: on


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
        for i in range(blocks * part // column_tiles, blocks * (part + 1) // column_tiles):
            filter_rows(block, rows, scratch, count, i * LANES, out)
        row += count


@jit
def filter_rows(block, rows, taps, count, channel, out):
    """Compute up to ``LANES`` channels of output rows at an address."""
    width, kernel, step = word(block, OUT_W), word(block, TAP_COLUMNS), word(block, TAP_COLUMN)
    stride, is_whole = word(block, STRIDE_COLUMN), word(block, COLUMNS) - channel >= LANES
    shares = (kernel == 3 or kernel == 5) and (stride == step or stride == 2 * step)
    if not (shares and is_whole and width >= HEIGHT):
        filter_pixels(block, rows, taps, count * width, channel, out)
        return
    tap_rows, pitch, limits = word(block, TAP_ROWS), word(block, PITCH), block + 8 * LOW
    weight = word(block, WEIGHT) + 4 * channel * (kernel * tap_rows + 1)
    for row in range(count):
        for x in range(0, width, HEIGHT):
            place = row * width + min(x, width - HEIGHT)
            source = load_i64(rows + 8 * place) + 4 * channel
            target = out + 4 * channel + place * pitch
            if kernel == 3:
                if stride == step:
                    three(source, step, taps, tap_rows, weight, target, pitch, limits)
                else:
                    three_by_two(source, step, taps, tap_rows, weight, target, pitch, limits)
            elif stride == step:
                five(source, step, taps, tap_rows, weight, target, pitch, limits)
            else:
                five_by_two(source, step, taps, tap_rows, weight, target, pitch, limits)


@jit
def filter_pixels(block, rows, taps, pixels, channel, out):
    """Compute up to ``LANES`` channels of pixels at an address, whatever the windows."""
    count = word(block, TAP_ROWS) * word(block, TAP_COLUMNS)
    weight = word(block, WEIGHT) + 4 * channel * (count + 1)
    pitch, columns, limits = word(block, PITCH), word(block, COLUMNS) - channel, block + 8 * LOW
    channel *= 4
    each_channel(rows, taps, count, channel, weight, out + channel, pitch, pixels, columns, limits)


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


SOURCE, TARGET, STACK, SOURCE_IMAGE, TARGET_IMAGE, HEIGHT_ROWS, WIDTH_COLUMNS = blocks.PACK.slots(
    "source", "target", "images", "source_image", "target_image", "rows", "columns"
)
DOWN, ACROSS, BLOCK_WIDTH, LAST_WIDTH, HAS_BIAS, BIAS, SHARES = blocks.PACK.slots(
    "down", "across", "width", "last_width", "has_bias", "bias", "tiles"
)


@kernel(blocks.PACK)
def pack_matrix(block, tile, worker):
    """Write a share of the blocks of columns of all matrices."""
    rows, columns = word(block, HEIGHT_ROWS), word(block, WIDTH_COLUMNS)
    width = word(block, BLOCK_WIDTH)
    blocks, tiles = (columns + width - 1) // width, word(block, SHARES)
    parts = blocks * word(block, STACK)
    lead = word(block, HAS_BIAS)
    for part in range(parts * tile // tiles, parts * (tile + 1) // tiles):
        image, first = part // blocks, part % blocks * width
        source = word(block, SOURCE) + image * word(block, SOURCE_IMAGE)
        target = word(block, TARGET) + image * word(block, TARGET_IMAGE)
        target += 4 * first * (rows + lead)
        if first + width >= columns:
            width = word(block, LAST_WIDTH)
        filled = min(width, columns - first)
        if lead:
            fill_bytes(target, 0, 4 * width)
            if word(block, BIAS):
                copy_bytes(target, word(block, BIAS) + 4 * first, 4 * filled)
            target += 4 * width
        source += first * word(block, ACROSS)
        pack_block(source, target, rows, filled, width, word(block, DOWN), word(block, ACROSS))
        width = word(block, BLOCK_WIDTH)


@jit
def pack_block(source, target, rows, filled, width, down, across):
    """Write one block of columns, zeros behind the last."""
    for _ in range(rows):
        if across == 4:
            copy_bytes(target, source, 4 * filled)
        else:
            for j in range(filled):
                store_f32(target + 4 * j, load_f32(source + j * across))
        fill_bytes(target + 4 * filled, 0, 4 * (width - filled))
        target += 4 * width
        source += down
