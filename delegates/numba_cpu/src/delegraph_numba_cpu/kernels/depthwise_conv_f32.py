"""Depthwise convolutions of float32 images."""

from __future__ import annotations

from delegraph_numba_cpu.codegen import depthwise_conv_f32_micro_kernels
from delegraph_numba_cpu.codegen.intrinsics import (
    jit,
    load_f32,
    load_i64,
    store_f32,
    word,
)
from delegraph_numba_cpu.codegen.registry import kernel
from delegraph_numba_cpu.codegen.vector_ir import LANES
from delegraph_numba_cpu.instructions.depthwise_conv_f32 import (
    DEPTHWISE,
    HIGH,
    REPEAT,
    tile_pixels,
)
from delegraph_numba_cpu.kernels.conv_f32_windows import (
    COLUMN_TILES,
    COLUMNS,
    HEIGHT,
    LEFT,
    LOW,
    OUT_W,
    PITCH,
    ROWS_AT,
    STRIDE_COLUMN,
    TAP_COLUMN,
    TAP_COLUMNS,
    TAP_ROWS,
    WEIGHT,
    Y,
    chunk_rows,
    chunk_source,
    output_offset,
    own_scratch,
    row_range,
    write_pixels,
    write_taps,
)

channels = depthwise_conv_f32_micro_kernels.channel_product(HEIGHT, LANES, masked=False)
some_channels = depthwise_conv_f32_micro_kernels.channel_product(HEIGHT, LANES, masked=True)
three = depthwise_conv_f32_micro_kernels.row_product((HEIGHT, HIGH), LANES, 3, stride=1)
three_by_two = depthwise_conv_f32_micro_kernels.row_product((HEIGHT, HIGH), LANES, 3, stride=2)
five = depthwise_conv_f32_micro_kernels.row_product((HEIGHT, HIGH), LANES, 5, stride=1)
five_by_two = depthwise_conv_f32_micro_kernels.row_product((HEIGHT, HIGH), LANES, 5, stride=2)
row_tile = jit(tile_pixels)


@kernel(DEPTHWISE)
def depthwise(record, tile, worker):
    """Compute a tile of a depthwise convolution.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    column_tiles = word(record, COLUMN_TILES)
    part, tile = tile % column_tiles, tile // column_tiles
    row, last = row_range(record, tile)
    scratch = own_scratch(record, worker)
    rows = scratch + word(record, ROWS_AT)
    write_taps(record, scratch)
    blocks = (word(record, COLUMNS) + LANES - 1) // LANES
    while row < last:
        count = chunk_rows(record, row, last)
        write_pixels(record, rows, chunk_source(record, scratch, row, count), count)
        out = word(record, Y) + output_offset(record, row)
        for i in range(blocks * part // column_tiles, blocks * (part + 1) // column_tiles):
            filter_rows(record, rows, scratch, scratch, count, i * LANES, out)
        row += count


@jit
def filter_rows(record, rows, taps, inner_taps, count, channel, out):
    """Compute up to ``LANES`` channels of adjacent output rows of a depthwise convolution.

    *inner_taps* serves the register tiles that are not at a padded edge of the image, and the last
    tile of a row.

    Args:
        record: address of the kernel call's operands.
        rows: address of a table of the pixels' addresses; of offsets if *taps* has addresses.
        taps: address of a table of the taps' offsets, or of the first pixel's taps' addresses.
        inner_taps: the same for taps inside the image.
        count: number of output rows.
        channel: number of the first channel.
        out: address of the results.
    """
    width, kernel, step = word(record, OUT_W), word(record, TAP_COLUMNS), word(record, TAP_COLUMN)
    stride, is_whole = word(record, STRIDE_COLUMN), word(record, COLUMNS) >= LANES
    height = row_tile(width, HEIGHT)
    inner = height if word(record, LEFT) else 0
    shares = (kernel == 3 or kernel == 5) and (stride == step or stride == 2 * step)
    if not (shares and is_whole and width >= height):
        filter_pixels(record, rows, taps, count * width, channel, out)
        return
    tap_rows, pitch, limits = word(record, TAP_ROWS), word(record, PITCH), record + 8 * LOW
    weight, first = channel_weights(record, channel), first_channel(record, channel)
    # fmt: off
    for row in range(count):
        for x in range(0, width, height):
            place = row * width + min(x, width - height)
            source = load_i64(rows + 8 * place) + first
            target = out + first + place * pitch
            table = inner_taps if inner <= x < width - height else taps
            if kernel == 3:
                if stride == step:
                    three(height, source, step, table, tap_rows, weight, target, pitch, limits)
                else:
                    three_by_two(height, source, step, table, tap_rows, weight, target, pitch,
                                 limits)
            elif stride == step:
                five(height, source, step, table, tap_rows, weight, target, pitch, limits)
            else:
                five_by_two(height, source, step, table, tap_rows, weight, target, pitch, limits)
    # fmt: on


@jit
def channel_weights(record, channel):
    """Return the address of the weights of the block of channels that begins at *channel*.

    *record* is the address of the kernel call's operands.
    """
    taps = word(record, TAP_ROWS) * word(record, TAP_COLUMNS)
    return word(record, WEIGHT) + 4 * channel * (taps + 1)


@jit
def first_channel(record, channel):
    """Return the offset in a pixel of a block of channels; the last block ends with the pixel.

    *record* is the address of the kernel call's operands.
    """
    return 4 * max(0, min(channel, word(record, COLUMNS) - LANES))


@jit
def filter_pixels(record, rows, taps, pixels, channel, out):
    """Store up to ``LANES`` channels of *pixels* pixels, for windows of any shape.

    *channel* is the first channel, and *out* the address of the first pixel. *record* is the
    address of the kernel call's operands.
    """
    count = word(record, TAP_ROWS) * word(record, TAP_COLUMNS)
    weight, first = channel_weights(record, channel), first_channel(record, channel)
    pitch, columns, limits = word(record, PITCH), word(record, COLUMNS), record + 8 * LOW
    out += first
    while pixels > 0:
        if columns >= LANES:
            channels(rows, taps, count, first, weight, out, pitch, pixels, columns, limits)
        else:
            some_channels(rows, taps, count, first, weight, out, pitch, pixels, columns, limits)
        rows += 8 * HEIGHT
        out += HEIGHT * pitch
        pixels -= HEIGHT


XS, YS, VALUES, TIMES, PARTS = REPEAT.slots("x", "y", "values", "times", "tiles")


@kernel(REPEAT)
def repeat_channels(record, tile, worker):
    """Write this tile's values, each ``times`` times.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    values, tiles, times = word(record, VALUES), word(record, PARTS), word(record, TIMES)
    first, last = values * tile // tiles, values * (tile + 1) // tiles
    target = word(record, YS) + 4 * first * times
    for i in range(first, last):
        value = load_f32(word(record, XS) + 4 * i)
        for _ in range(times):
            store_f32(target, value)
            target += 4
