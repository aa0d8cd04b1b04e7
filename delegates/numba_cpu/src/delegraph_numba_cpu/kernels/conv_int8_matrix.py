"""Products of rows of bytes and packed weights, by the micro-kernels of each processor level."""

from __future__ import annotations

from delegraph_numba_cpu.codegen.conv_int8_amx import (
    TILE_ROWS,
    lay_out_tiles,
    multiply_tile,
    multiply_tile_16,
    release_tiles,
)
from delegraph_numba_cpu.codegen.conv_int8_micro_kernels import (
    HAS_SPLIT_ROWS,
    NARROW_ROWS,
    NARROW_TALL,
    SHORT_SPLIT,
    SINGLE,
    TALL_SPLIT,
    WIDE,
    WIDE_ROWS,
    WIDE_TALL,
    dot_one,
    dot_single,
    split_rows,
    sum_bytes,
)
from delegraph_numba_cpu.codegen.conv_int8_output import (
    finish_exact,
    finish_exact_64,
    finish_exact_away,
    finish_exact_away_64,
    finish_exact_close,
    finish_exact_close_64,
    finish_nearest,
    finish_nearest_64,
)
from delegraph_numba_cpu.codegen.intrinsics import jit, load_i32, store_i32, word
from delegraph_numba_cpu.codegen.registry import level
from delegraph_numba_cpu.instructions import conv_int8 as instructions
from delegraph_numba_cpu.kernels.conv_int8_tiles import (
    dot_narrow_rows,
    dot_split_blocks,
    dot_wide_rows,
    is_row,
    tile_height,
)

HAS_TILES = level().has_tiles
LEAST_STEPS = 12
"""Least number of steps for which tile registers multiply by one block faster than vectors."""

HEADER_BYTES = instructions.HEADER_BYTES
EXACT, EXACT_AWAY, EXACT_CLOSE = (
    instructions.EXACT,
    instructions.EXACT_AWAY,
    instructions.EXACT_CLOSE,
)

WEIGHTS, HEADERS, DEPTH, STEPS, BLOCK_BYTES, OUTPUTS, LOW, _, _, _, SUM_FACTOR = (
    instructions.MATRIX.slots(*instructions.MATRIX.names)
)


@jit
def finish_rows(acc, acc_bytes, rows, header, target, row_bytes, count, record):
    """Convert accumulators to bytes, and store up to 16 results of each row.

    Args:
        acc: address of the first row's accumulators.
        acc_bytes: bytes from one row's accumulators to the next.
        rows: number of rows.
        header: address of the header of these 16 outputs, with the numbers that convert
            accumulators; see ``instructions.HEADER``.
        target: address of the first row's results.
        row_bytes: bytes from one row of results to the next.
        count: number of results of a row, at most 16.
        record: address of the word ``low`` in the record of the weights; see
            ``instructions.MATRIX``.
    """
    low, high, rounding = word(record, 0), word(record, 1), word(record, 2)
    if rounding == EXACT:
        finish_exact(acc, acc_bytes, rows, header, target, row_bytes, count, low, high)
    elif rounding == EXACT_AWAY:
        finish_exact_away(acc, acc_bytes, rows, header, target, row_bytes, count, low, high)
    elif rounding == EXACT_CLOSE:
        finish_exact_close(acc, acc_bytes, rows, header, target, row_bytes, count, low, high)
    else:
        finish_nearest(acc, acc_bytes, rows, header, target, row_bytes, count, low, high)


@jit
def multiply(a, a_bytes, rows, sums, matrix, first, last, target, row_bytes, acc, lines):
    """Multiply rows of unsigned bytes by some columns of packed weights; store results as bytes.

    A micro-kernel for several rows reads a fixed number of them, at most 16. If there are fewer
    rows, it also reads the memory after the last one, and after the last of *sums*. No results of
    these missing rows are stored.

    Args:
        a: address of the first row, of unsigned bytes.
        a_bytes: bytes from one row to the next.
        rows: number of rows.
        sums: address of an int32 for each row, which is added to the row's accumulators; 0 for
            none.
        matrix: address of the record of the weights; see ``instructions.MATRIX``.
        first: number of the first block of 16 columns.
        last: number of the block after the last one.
        target: address of the first row of results, of all columns.
        row_bytes: bytes from one row of results to the next.
        acc: address of scratch memory: ``ACC_BYTES`` bytes for accumulators. Unless *lines* is
            given, ``SPLIT_BYTES`` bytes for each 4 bytes of a row follow. Some levels store rows
            there as int16, by :func:`split_rows`.
        lines: None, or the address of the record ``WINDOWS`` of windows in padded lines. *a* is
            then the address of a table of the windows' addresses, *a_bytes* is 8, and *sums* is 0.
            Numba compiles a separate function for each case.
    """
    if HAS_SPLIT_ROWS and not is_row(rows, lines):
        multiply_split(a, a_bytes, rows, sums, matrix, first, last, target, row_bytes, acc, lines)
        return
    outputs = word(matrix, OUTPUTS)
    whole = outputs // 64 * 4
    n = first
    if HAS_TILES and lines is None and rows > 1:
        lay_out_tiles(acc + 4096, word(matrix, STEPS))
        while n < min(last, whole):
            multiply_tiles(a, a_bytes, rows, sums, matrix, n, target, row_bytes, acc)
            n += 4
        if word(matrix, STEPS) >= LEAST_STEPS and rows >= TILE_ROWS:
            while n < last:
                multiply_tiles_16(a, a_bytes, rows, sums, matrix, n, target, row_bytes, acc)
                n += 1
        release_tiles()
    while n < last:
        if n < whole:
            multiply_64(a, a_bytes, rows, sums, matrix, n, target, row_bytes, acc, lines)
            n += 4
        elif WIDE == 2 and rows > 1 and last - n >= 2:
            multiply_32(a, a_bytes, rows, sums, matrix, n, target, row_bytes, acc, lines)
            n += 2
        else:
            multiply_16(a, a_bytes, rows, sums, matrix, n, target, row_bytes, acc, lines)
            n += 1


@jit
def multiply_split(a, a_bytes, rows, sums, matrix, first, last, target, row_bytes, acc, lines):
    """Compute the same results as :func:`multiply`, by micro-kernels that read rows of int16.

    Rows of bytes are first converted by :func:`split_rows`. Padded lines already have int16.
    """
    steps, whole = word(matrix, STEPS), word(matrix, OUTPUTS) // 64 * 4
    record, split = matrix + 8 * LOW, acc + instructions.ACC_BYTES
    height = tile_height(rows, SHORT_SPLIT, TALL_SPLIT)
    count = min(height, rows)
    for start in range(0, rows, height):
        m = max(min(start, rows - height), 0)
        if lines is not None:
            split = a + m * a_bytes
        else:
            split_rows(a + m * a_bytes, a_bytes, height, steps, split)
        n, place = first, target + m * row_bytes + 16 * first
        while n < last:
            header = word(matrix, HEADERS) + n * HEADER_BYTES
            if n < whole:
                dot_split_blocks(split, height, matrix, n, 64, sums_from(sums, m), acc, lines)
                finish_rows_64(acc, count, header, place, row_bytes, record)
                n, place = n + 4, place + 64
            else:
                left = min(word(matrix, OUTPUTS) - 16 * n, 16)
                dot_split_blocks(split, height, matrix, n, left, sums_from(sums, m), acc, lines)
                finish_rows(acc, 64, count, header, place, row_bytes, left, record)
                n, place = n + 1, place + 16


@jit
def multiply_tiles(a, a_bytes, rows, sums, matrix, n, target, row_bytes, acc):
    """Compute the 64 columns from block *n* on by tile registers.

    See :func:`multiply` for arguments.
    """
    size, steps, record = word(matrix, BLOCK_BYTES), word(matrix, STEPS), matrix + 8 * LOW
    weights, header = word(matrix, WEIGHTS) + n * size, word(matrix, HEADERS) + n * HEADER_BYTES
    place = target + 16 * n
    for start in range(0, rows, TILE_ROWS):
        m = max(min(start, rows - TILE_ROWS), 0)
        multiply_tile(a + m * a_bytes, a_bytes, weights, size, steps, header, acc)
        if sums:
            add_sums(acc, sums + 4 * m, 64)
        done, count = start - m, min(rows - start, TILE_ROWS)
        finish_rows_64(
            acc + 256 * done, count, header, place + start * row_bytes, row_bytes, record
        )


@jit
def multiply_tiles_16(a, a_bytes, rows, sums, matrix, n, target, row_bytes, acc):
    """Compute the columns of block *n*, 16 at most, by tile registers; see :func:`multiply`."""
    size, steps, record = word(matrix, BLOCK_BYTES), word(matrix, STEPS), matrix + 8 * LOW
    weights, header = word(matrix, WEIGHTS) + n * size, word(matrix, HEADERS) + n * HEADER_BYTES
    place, columns = target + 16 * n, word(matrix, OUTPUTS) - 16 * n
    for start in range(0, rows, TILE_ROWS):
        m = min(start, rows - TILE_ROWS)
        multiply_tile_16(a + m * a_bytes, a_bytes, weights, steps, header, acc)
        if sums:
            add_sums(acc, sums + 4 * m, 16)
        first, count, at = acc + 64 * (start - m), min(rows - start, TILE_ROWS), start * row_bytes
        finish_rows(first, 64, count, header, place + at, row_bytes, columns, record)


@jit
def add_sums(acc, sums, columns):
    """Add to all accumulators of each of ``TILE_ROWS`` rows the int32 of the row.

    Args:
        acc: address of the accumulators.
        sums: address of an int32 for each row.
        columns: number of accumulators of a row.
    """
    for m in range(TILE_ROWS):
        value = load_i32(sums + 4 * m)
        for i in range(columns):
            place = acc + 4 * (columns * m + i)
            store_i32(place, load_i32(place) + value)


@jit
def multiply_64(a, a_bytes, rows, sums, matrix, n, target, row_bytes, acc, lines):
    """Compute the 64 columns from block *n* on; see :func:`multiply` for arguments."""
    size, steps, record = word(matrix, BLOCK_BYTES), word(matrix, STEPS), matrix + 8 * LOW
    weights, header = word(matrix, WEIGHTS) + n * size, word(matrix, HEADERS) + n * HEADER_BYTES
    place = target + 16 * n
    if is_row(rows, lines):
        for j in range(0, 4, SINGLE):
            dot_single(
                a, a_bytes, weights + j * size, size, steps, header + j * HEADER_BYTES, sums,
                acc + 64 * j, 256,
            )  # fmt: skip
        finish_rows_64(acc, 1, header, place, row_bytes, record)
        return
    height = tile_height(rows, WIDE_ROWS, WIDE_TALL)
    count = min(height, rows)
    for start in range(0, rows, height):
        m = max(min(start, rows - height), 0)
        for j in range(0, 4, WIDE):
            dot_wide_rows(
                height, a + m * a_bytes, a_bytes, weights + j * size, size, steps,
                header + j * HEADER_BYTES, sums_from(sums, m), acc + 64 * j, 256, lines,
            )  # fmt: skip
        finish_rows_64(acc, count, header, place + m * row_bytes, row_bytes, record)


@jit
def multiply_32(a, a_bytes, rows, sums, matrix, n, target, row_bytes, acc, lines):
    """Compute up to 32 columns from block *n* on; see :func:`multiply` for arguments."""
    size, steps, record = word(matrix, BLOCK_BYTES), word(matrix, STEPS), matrix + 8 * LOW
    weights, header = word(matrix, WEIGHTS) + n * size, word(matrix, HEADERS) + n * HEADER_BYTES
    place, columns = target + 16 * n, word(matrix, OUTPUTS) - 16 * n
    height = tile_height(rows, WIDE_ROWS, WIDE_TALL)
    count = min(height, rows)
    for start in range(0, rows, height):
        m = max(min(start, rows - height), 0)
        dot_wide_rows(
            height, a + m * a_bytes, a_bytes, weights, size, steps, header, sums_from(sums, m),
            acc, 128, lines,
        )  # fmt: skip
        for j in range(2):
            finish_rows(
                acc + 64 * j, 128, count, header + j * HEADER_BYTES,
                place + m * row_bytes + 16 * j, row_bytes, columns - 16 * j, record,
            )  # fmt: skip


@jit
def multiply_16(a, a_bytes, rows, sums, matrix, n, target, row_bytes, acc, lines):
    """Compute the columns of block *n*, 16 at most; see :func:`multiply` for arguments."""
    size, steps, record = word(matrix, BLOCK_BYTES), word(matrix, STEPS), matrix + 8 * LOW
    weights, header = word(matrix, WEIGHTS) + n * size, word(matrix, HEADERS) + n * HEADER_BYTES
    place, columns = target + 16 * n, word(matrix, OUTPUTS) - 16 * n
    if is_row(rows, lines):
        dot_one(a, a_bytes, weights, size, steps, header, sums, acc, 64)
        finish_rows(acc, 64, 1, header, place, row_bytes, columns, record)
        return
    height = tile_height(rows, NARROW_ROWS, NARROW_TALL)
    count = min(height, rows)
    for start in range(0, rows, height):
        m = max(min(start, rows - height), 0)
        at, added = a + m * a_bytes, sums_from(sums, m)
        dot_narrow_rows(height, at, a_bytes, weights, size, steps, header, added, acc, lines)
        finish_rows(acc, 64, count, header, place + m * row_bytes, row_bytes, columns, record)


@jit
def finish_rows_64(acc, rows, header, target, row_bytes, record):
    """Convert accumulators to bytes, and store 64 results of each row; see :func:`finish_rows`."""
    rounding, flip = word(record, 2), word(record, 3)
    low, high = word(record, 0) + flip, word(record, 1) + flip
    if rounding == EXACT:
        finish_exact_64(acc, rows, header, target, row_bytes, flip, low, high)
    elif rounding == EXACT_AWAY:
        finish_exact_away_64(acc, rows, header, target, row_bytes, flip, low, high)
    elif rounding == EXACT_CLOSE:
        finish_exact_close_64(acc, rows, header, target, row_bytes, flip, low, high)
    else:
        finish_nearest_64(acc, rows, header, target, row_bytes, flip, low, high)


@jit
def sums_from(sums, row):
    """Return the address of the int32 that is added to the accumulators of row *row*.

    *sums* is the address of an array with an int32 for each row. If it is 0, nothing is added, and
    the result is 0.
    """
    return sums + 4 * row if sums else 0


@jit
def add_rows(a, a_bytes, rows, matrix, sums):
    """Store for each row the int32 that :func:`multiply` adds to the row's accumulators.

    It is the sum of the row's activations times the word ``sum_factor`` of the weights' record.

    Args:
        a: address of the first row, of unsigned bytes.
        a_bytes: bytes from one row to the next.
        rows: number of rows.
        matrix: address of the record that describes the weights; see ``MATRIX``.
        sums: address to which the int32 are written.

    Returns:
        *sums*, or 0 if nothing is added.
    """
    factor = word(matrix, SUM_FACTOR)
    if not factor:
        return 0
    for m in range(rows):
        store_i32(sums + 4 * m, sum_bytes(a, word(matrix, DEPTH)) * factor)
        a += a_bytes
    return sums
