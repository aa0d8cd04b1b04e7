"""Register tiles of 8-bit products, for rows of a matrix or for windows in padded lines."""

from __future__ import annotations

from delegraph_numba_cpu.codegen.conv_int8_line_kernels import (
    lines_narrow,
    lines_narrow_tall,
    lines_split,
    lines_split_tall,
    lines_wide,
    lines_wide_tall,
)
from delegraph_numba_cpu.codegen.conv_int8_micro_kernels import (
    HAS_SPLIT_ROWS,
    NARROW_ROWS,
    SHORT_SPLIT,
    WIDE_ROWS,
    dot_narrow,
    dot_narrow_tall,
    dot_split,
    dot_split_tall,
    dot_wide,
    dot_wide_tall,
)
from delegraph_numba_cpu.codegen.intrinsics import jit, word
from delegraph_numba_cpu.instructions import conv_int8 as instructions

HEADER_BYTES = instructions.HEADER_BYTES

KERNEL_H, DILATION_H, LINE_BYTES = instructions.WINDOWS.slots(
    "kernel_h", "dilation_h", "line_bytes"
)
WEIGHTS, HEADERS, STEPS, BLOCK_BYTES = instructions.MATRIX.slots(
    "weights", "headers", "steps", "block_bytes"
)


@jit
def tile_height(rows, short, tall):
    """Return the tile height, *short* or *tall*, for which fewer rows are computed in all.

    If both are equal, it is *tall*. *rows* is the number of rows of the product; rows are computed
    twice if the height does not divide it.
    """
    return tall if -(-rows // tall) * tall <= -(-rows // short) * short else short


@jit
def dot_wide_rows(height, a, a_bytes, weights, size, steps, headers, sums, acc, acc_bytes, lines):
    """Store at *acc* the products of *height* rows and ``WIDE`` blocks of columns.

    The height is ``WIDE_ROWS`` or ``WIDE_TALL``. *a*, *sums* and *lines* are as in
    ``conv_int8_matrix.multiply``. Blocks of *weights* are *size* bytes apart. For all others, see
    the intrinsic ``dot_tile`` of ``conv_int8_micro_kernels``.
    """
    if lines is not None:
        count, apart = word(lines, KERNEL_H), line_step(lines)
        steps //= count
        if height == WIDE_ROWS:
            lines_wide(a, count, apart, weights, size, steps, headers, acc, acc_bytes)
        else:
            lines_wide_tall(a, count, apart, weights, size, steps, headers, acc, acc_bytes)
    elif height == WIDE_ROWS:
        dot_wide(a, a_bytes, weights, size, steps, headers, sums, acc, acc_bytes)
    else:
        dot_wide_tall(a, a_bytes, weights, size, steps, headers, sums, acc, acc_bytes)


@jit
def dot_narrow_rows(height, a, a_bytes, weights, size, steps, header, sums, acc, lines):
    """Store at *acc* the products of *height* rows and one block of columns.

    The height is ``NARROW_ROWS`` or ``NARROW_TALL``. Other arguments are those of
    :func:`dot_wide_rows`; rows of results are 64 bytes apart.
    """
    if lines is not None:
        count, apart = word(lines, KERNEL_H), line_step(lines)
        steps //= count
        if height == NARROW_ROWS:
            lines_narrow(a, count, apart, weights, size, steps, header, acc, 64)
        else:
            lines_narrow_tall(a, count, apart, weights, size, steps, header, acc, 64)
    elif height == NARROW_ROWS:
        dot_narrow(a, a_bytes, weights, size, steps, header, sums, acc, 64)
    else:
        dot_narrow_tall(a, a_bytes, weights, size, steps, header, sums, acc, 64)


@jit
def is_row(rows, lines):
    """Whether a product of *rows* rows is computed by the micro-kernels of a single row.

    It is False if *lines* is not None, since those micro-kernels read no padded lines.
    """
    if lines is None:
        return rows == 1
    return False


@jit
def line_step(lines):
    """Return the number of bytes from one line of a window to the next, in padded lines.

    *lines* is the address of the record that describes the windows. On levels with
    ``HAS_SPLIT_ROWS``, padded lines have int16 in place of bytes.
    """
    return word(lines, DILATION_H) * word(lines, LINE_BYTES) * (2 if HAS_SPLIT_ROWS else 1)


@jit
def dot_split_blocks(split, height, matrix, n, columns, sums, acc, lines):
    """Store products of rows of int16 and up to 64 columns of weights, from block *n* on.

    Args:
        split: address of the rows, which :func:`split_rows` has converted from bytes.
        height: number of rows.
        matrix: address of the record that describes the weights; see ``MATRIX``.
        n: number of the first block of 16 columns.
        columns: number of needed columns; others may be skipped.
        sums: address of an int32 for each row, which is added to the row's sums; 0 for none.
        acc: address of the results, int32: ``[height, 64]``, or ``[height, 16]`` for up to 16
            columns.
        lines: None, or the address of the record ``WINDOWS`` of windows in padded lines. *split* is
            then the address of a table of the windows' addresses.
    """
    steps, size = word(matrix, STEPS), word(matrix, BLOCK_BYTES)
    weights = word(matrix, WEIGHTS) + n * size
    header = word(matrix, HEADERS) + n * HEADER_BYTES
    row_bytes = 256 if columns > 16 else 64
    for column in range(0, columns, 8):
        block, half = column // 16, column % 16 * 4
        place, bias = weights + block * size + half, header + block * HEADER_BYTES + half
        target = acc + 4 * column
        if lines is not None:
            count, apart = word(lines, KERNEL_H), line_step(lines)
            if height == SHORT_SPLIT:
                lines_split(split, count, apart, place, steps // count, bias, target, row_bytes)
            else:
                lines_split_tall(
                    split, count, apart, place, steps // count, bias, target, row_bytes
                )
        elif height == SHORT_SPLIT:
            dot_split(split, 8 * steps, place, steps, bias, sums, target, row_bytes)
        else:
            dot_split_tall(split, 8 * steps, place, steps, bias, sums, target, row_bytes)
