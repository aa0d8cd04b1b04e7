"""Convolutions and matrix products of float32."""

from __future__ import annotations

from delegraph_numba_cpu.codegen import conv_f32_micro_kernels, conv_f32_pixel_pairs
from delegraph_numba_cpu.codegen.intrinsics import (
    copy_bytes,
    fill_bytes,
    jit,
    load_f32,
    load_i64,
    not_inlined,
    store_f32,
    word,
)
from delegraph_numba_cpu.codegen.registry import kernel
from delegraph_numba_cpu.codegen.vector_ir import LANES
from delegraph_numba_cpu.instructions import conv_f32 as instructions
from delegraph_numba_cpu.kernels.conv_f32_windows import (
    COLUMN_TILES,
    COLUMNS,
    HEIGHT,
    LOW,
    OUT_H,
    OUT_W,
    PITCH,
    RESIDUAL,
    RESIDUAL_PITCH,
    ROWS_AT,
    SLOPES,
    TAP_BYTES,
    TAP_COLUMNS,
    TAP_ROWS,
    WEIGHT,
    WEIGHT_IMAGE,
    Y,
    chunk_rows,
    chunk_source,
    output_offset,
    own_scratch,
    row_range,
    write_pixels,
    write_taps,
)

HALF, NARROW, MIDDLE, WIDE = LANES // 2, LANES, LANES + LANES // 2, 2 * LANES
"""Numbers of columns of the four register tiles: half a register, one, one and a half, and two."""

FEW = 3
"""Largest number of pixels for which two blocks of columns are computed together.

With so few pixels, one block has too few sums, so that each addition would wait for the previous
one.
"""

NEAR_BYTES = 32 << 10
"""Distance in bytes between weights in use and weights that are prefetched, if they are read once.

Prefetched weights arrive in time, and need little of the cache.
"""

IN_PAIRS = LANES == 16
"""Whether two pixels share a register where only half a register of columns is computed."""

MIDDLE_HEIGHT = HEIGHT + HEIGHT % 2 if IN_PAIRS else HEIGHT
"""Number of pixels of a register tile of one and a half registers of columns."""

HALF_HEIGHT = 12
"""Number of pixels of a register tile with half a register of columns, if there are so many."""

LINE_HEIGHT = {64: 16, 32: 12}.get(4 * LANES, 0)
"""Number of pixels, in two lines, of a register tile with one register of columns; 0 for none.

With so many sums, no addition waits for the previous one, and each row of weights serves more
pixels.
"""

wide = conv_f32_micro_kernels.matrix_product((HEIGHT,), (LANES, LANES))
middle = conv_f32_micro_kernels.matrix_product(
    (MIDDLE_HEIGHT,), (LANES, LANES // 2), in_pairs=IN_PAIRS, prefetches=False
)
narrow = conv_f32_micro_kernels.matrix_product((HEIGHT,), (LANES,), prefetches=False)
narrow_line = conv_f32_micro_kernels.matrix_product(
    (LINE_HEIGHT or 1,), (LANES,), in_lines=True, prefetches=False
)
half = conv_f32_micro_kernels.matrix_product((HEIGHT,), (HALF,), prefetches=False)
half_of_pairs = conv_f32_pixel_pairs.pairs_product(HALF_HEIGHT, HALF)
low_wide = conv_f32_micro_kernels.matrix_product(tuple(range(1, HEIGHT)), (LANES, LANES))
middle_row = conv_f32_micro_kernels.matrix_product((1,), (LANES, LANES // 2))
narrow_row = conv_f32_micro_kernels.matrix_product((1,), (LANES,))
half_row = conv_f32_micro_kernels.matrix_product((1,), (HALF,))
four_blocks = conv_f32_micro_kernels.blocks_product((1,), 4, LANES)
two_blocks = conv_f32_micro_kernels.blocks_product(tuple(range(1, FEW + 1)), 2, LANES)


@kernel(instructions.CONV)
def conv(record, tile, worker):
    """Compute one tile of a convolution: a range of output rows and a range of columns.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    column_tiles = word(record, COLUMN_TILES)
    part, tile = tile % column_tiles, tile // column_tiles
    row, last = row_range(record, tile)
    scratch = own_scratch(record, worker)
    rows = scratch + word(record, ROWS_AT)
    write_taps(record, scratch)
    while row < last:
        count = chunk_rows(record, row, last)
        write_pixels(record, rows, chunk_source(record, scratch, row, count), count)
        first, end = column_range(record, part)
        pixels = count * word(record, OUT_W)
        if pixels <= FEW and word(record, RESIDUAL) == 0 == word(record, SLOPES):
            first = multiply_blocks(record, rows, scratch, pixels, first, end, row)
        for column in range(first, end, WIDE):
            multiply(record, rows, scratch, pixels, column, row)
        row += count


@jit
def multiply_blocks(record, rows, taps, pixels, column, end, row):
    """Compute blocks of output columns, two or four at a time; return the next column.

    It is used for chunks (groups of output rows) of at most ``FEW`` pixels.

    Args:
        record: address of the convolution's operands.
        rows: address of a table of the pixels' addresses.
        taps: address of a table of the taps' offsets.
        pixels: number of pixels of the chunk.
        column: number of the first column.
        end: number of the column after the last one.
        row: number of the chunk's first output row.
    """
    count, size = word(record, TAP_ROWS) * word(record, TAP_COLUMNS), word(record, TAP_BYTES)
    weight = word(record, WEIGHT) + row // word(record, OUT_H) * word(record, WEIGHT_IMAGE)
    out = word(record, Y) + output_offset(record, row)
    apart = count * size + 4
    end = min(end, word(record, COLUMNS))
    while pixels == 1 and column + 4 * WIDE <= end:
        # fmt: off
        four_blocks(1, rows, taps, count, size, weight + column * apart, WIDE * apart,
                    out + 4 * column, word(record, PITCH), record + 8 * LOW)
        # fmt: on
        column += 4 * WIDE
    while column + 2 * WIDE <= end:
        # fmt: off
        two_blocks(pixels, rows, taps, count, size, weight + column * apart, WIDE * apart,
                   out + 4 * column, word(record, PITCH), record + 8 * LOW)
        # fmt: on
        column += 2 * WIDE
    return column


@jit
def multiply(record, rows, taps, pixels, column, row):
    """Compute up to ``WIDE`` output columns of the pixels of a chunk (a group of output rows).

    Args:
        record: address of the convolution's operands.
        rows: address of a table of the pixels' addresses.
        taps: address of a table of the taps' offsets.
        pixels: number of pixels of the chunk.
        column: number of the first column.
        row: number of the chunk's first output row.
    """
    out, residual = word(record, Y) + output_offset(record, row), word(record, RESIDUAL)
    if residual:
        residual += row * word(record, OUT_W) * word(record, RESIDUAL_PITCH)
    weight = word(record, WEIGHT) + row // word(record, OUT_H) * word(record, WEIGHT_IMAGE)
    multiply_to(record, rows, taps, pixels, column, weight, out, residual)


@jit
def multiply_to(record, rows, taps, pixels, column, weight, out, residual):
    """Compute up to ``WIDE`` output columns of some pixels, and write them at a given address.

    Args:
        record: address of the convolution's operands.
        rows: address of a table of the pixels' addresses.
        taps: address of a table of the taps' offsets.
        pixels: number of pixels.
        column: number of the first column.
        weight: address of the packed weights of all columns.
        out: address of the first pixel's results, of all columns.
        residual: address of the values that are added to the first pixel's results, of all columns;
            0 for none.
    """
    tap_count, tap_bytes = (
        word(record, TAP_ROWS) * word(record, TAP_COLUMNS),
        word(record, TAP_BYTES),
    )
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
        word(record, PITCH),
        pixels,
        word(record, COLUMNS) - column,
        record + 8 * LOW,
    )


@jit
def matrix(rows, taps, count, size, weight, out, residual, pitch, pixels, columns, limits):
    """Write up to ``WIDE`` columns of any number of pixels, by one register tile after another.

    Arguments are those of ``conv_f32_micro_kernels.matrix_product``; *count* and *size* are
    ``tap_count`` and ``tap_bytes``.
    """
    block = WIDE * (count * size + 4)
    residual_pitch = word(limits, RESIDUAL_PITCH - LOW) if residual else 0
    ahead = weight + (block if pixels > HEIGHT else min(block, NEAR_BYTES))
    step = max(1, 4 * WIDE // ((pixels + HEIGHT - 1) // HEIGHT))
    # fmt: off
    while pixels > 0:
        height = HEIGHT
        if pixels == 1 or (columns > MIDDLE and HEIGHT != pixels < 2 * HEIGHT - 1):
            low_tiles(rows, taps, count, size, weight, ahead, step, out, residual, pitch, pixels,
                      columns, limits)
            return
        if columns > MIDDLE:
            wide(HEIGHT, rows, taps, count, size, weight, ahead, step, out, residual, pitch,
                 pixels, columns, limits)
        elif columns > NARROW:
            height = MIDDLE_HEIGHT
            middle(MIDDLE_HEIGHT, rows, taps, count, size, weight, ahead, step, out, residual,
                   pitch, pixels, columns, limits)
        elif columns > HALF and LINE_HEIGHT and pixels >= LINE_HEIGHT and are_lines(rows):
            height = LINE_HEIGHT
            narrow_line(LINE_HEIGHT, rows, taps, count, size, weight, ahead, step, out, residual,
                        pitch, pixels, columns, limits)
        elif columns > HALF:
            narrow(HEIGHT, rows, taps, count, size, weight, ahead, step, out, residual, pitch,
                   pixels, columns, limits)
        elif IN_PAIRS and pixels >= HALF_HEIGHT:
            height = HALF_HEIGHT
            half_of_pairs(rows, taps, count, size, weight, out, residual, pitch, pixels, columns,
                          limits)
        else:
            half(HEIGHT, rows, taps, count, size, weight, ahead, step, out, residual, pitch,
                 pixels, columns, limits)
        ahead += step * count * size // 4
        rows += 8 * height
        out += height * pitch
        residual += height * residual_pitch
        pixels -= height
    # fmt: on


@jit
def are_lines(rows):
    """Whether each half of the ``LINE_HEIGHT`` pixels whose addresses are at *rows* is a line.

    In a line, all distances between neighbours are equal. Only after the end of an image's row may
    the distance differ, so the first and the last distance are enough.
    """
    half = LINE_HEIGHT // 2
    step, middle = load_i64(rows + 8) - load_i64(rows), rows + 8 * half
    first = load_i64(middle - 8) - load_i64(rows)
    second = load_i64(middle + 8 * (half - 1)) - load_i64(middle)
    return first == second == (half - 1) * step


@jit
def low_tiles(
    rows, taps, count, size, weight, ahead, step, out, residual, pitch, pixels, columns, limits
):
    """Write up to ``WIDE`` columns of the last, few pixels, by lower register tiles.

    Either there is one pixel, or there are more than ``MIDDLE`` columns, of fewer pixels than two
    register tiles have. Arguments are those of :func:`matrix`; the weights from *ahead* on are
    prefetched, in steps of *step* bytes.
    """
    not_inlined()  # it would take registers from the loop over whole tiles
    residual_pitch = word(limits, RESIDUAL_PITCH - LOW) if residual else 0
    # fmt: off
    while pixels > 0:
        height = pixels if pixels < HEIGHT else (pixels + 1) // 2  # tiles share the work evenly
        if columns > MIDDLE:
            low_wide(height, rows, taps, count, size, weight, ahead, step, out, residual, pitch,
                     pixels, columns, limits)
        elif columns > NARROW:
            middle_row(1, rows, taps, count, size, weight, ahead, step, out, residual, pitch,
                       pixels, columns, limits)
        elif columns > HALF:
            narrow_row(1, rows, taps, count, size, weight, ahead, step, out, residual, pitch,
                       pixels, columns, limits)
        else:
            half_row(1, rows, taps, count, size, weight, ahead, step, out, residual, pitch,
                     pixels, columns, limits)
        ahead += step * count * size // 4
        rows += 8 * height
        out += height * pitch
        residual += height * residual_pitch
        pixels -= height
    # fmt: on


@jit
def column_range(record, part):
    """Return a tile's first output column and the end of its range, in blocks of ``WIDE`` columns.

    The end of the last tile may be beyond the last column.

    Args:
        record: address of the convolution's operands.
        part: number of the part of the columns.
    """
    blocks, parts = (word(record, COLUMNS) + WIDE - 1) // WIDE, word(record, COLUMN_TILES)
    return blocks * part // parts * WIDE, blocks * (part + 1) // parts * WIDE


SOURCE, TARGET, STACK, SOURCE_IMAGE, TARGET_IMAGE, HEIGHT_ROWS, WIDTH_COLUMNS = (
    instructions.PACK.slots(
        "source", "target", "images", "source_image", "target_image", "rows", "columns"
    )
)
DOWN, ACROSS, BLOCK_WIDTH, LAST_WIDTH, HAS_BIAS, BIAS, SHARES = instructions.PACK.slots(
    "down", "across", "width", "last_width", "has_bias", "bias", "tiles"
)


@kernel(instructions.PACK)
def pack_matrix(record, tile, worker):
    """Pack this tile's blocks of columns of all matrices of a batch.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    rows, columns = word(record, HEIGHT_ROWS), word(record, WIDTH_COLUMNS)
    width = word(record, BLOCK_WIDTH)
    blocks, tiles = (columns + width - 1) // width, word(record, SHARES)
    parts = blocks * word(record, STACK)
    lead = word(record, HAS_BIAS)
    for part in range(parts * tile // tiles, parts * (tile + 1) // tiles):
        image, first = part // blocks, part % blocks * width
        source = word(record, SOURCE) + image * word(record, SOURCE_IMAGE)
        target = word(record, TARGET) + image * word(record, TARGET_IMAGE)
        target += 4 * first * (rows + lead)
        if first + width >= columns:
            width = word(record, LAST_WIDTH)
        filled = min(width, columns - first)
        if lead:
            fill_bytes(target, 0, 4 * width)
            if word(record, BIAS):
                copy_bytes(target, word(record, BIAS) + 4 * first, 4 * filled)
            target += 4 * width
        source += first * word(record, ACROSS)
        pack_block(source, target, rows, filled, width, word(record, DOWN), word(record, ACROSS))
        width = word(record, BLOCK_WIDTH)


@jit
def pack_block(source, target, rows, filled, width, down, across):
    """Copy up to *width* columns of a matrix to a block, which has *width* columns.

    Args:
        source: address of the block's first element in row 0.
        target: address of the block; its rows follow one another.
        rows: number of rows of the matrix.
        filled: number of columns that the matrix has for this block; the other columns become 0.
        width: number of columns of the block.
        down: bytes from one row of the source to the next.
        across: bytes from one column of the source to the next.
    """
    for _ in range(rows):
        if across == 4:
            copy_bytes(target, source, 4 * filled)
        else:
            for j in range(filled):
                store_f32(target + 4 * j, load_f32(source + j * across))
        fill_bytes(target + 4 * filled, 0, 4 * (width - filled))
        target += 4 * width
        source += down
