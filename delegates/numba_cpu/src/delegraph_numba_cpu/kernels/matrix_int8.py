"""Rows of bytes times weights."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc"

from __future__ import annotations

from delegraph_numba_cpu.blocks import conv_int8 as blocks
from delegraph_numba_cpu.kernels.dot_int8 import (
    NARROW_ROWS,
    SINGLE,
    WIDE,
    WIDE_ROWS,
    dot_narrow,
    dot_single,
    dot_wide,
    finish_exact,
    finish_exact_away,
    finish_nearest,
    sum_bytes,
)
from delegraph_numba_cpu.kernels.machine import jit, store_i32, word

HEADER_BYTES = blocks.HEADER_BYTES
EXACT, EXACT_AWAY = blocks.EXACT, blocks.EXACT_AWAY

WEIGHTS, HEADERS, DEPTH, STEPS, BLOCK_BYTES, OUTPUTS, LOW, HIGH, ROUNDING, SUM_FACTOR = (
    blocks.MATRIX.slots(*blocks.MATRIX.names)
)


@jit
def finish_rows(acc, acc_bytes, rows, header, target, row_bytes, count, record):
    """Store rows of up to 16 results; *record* tells how they round, from word LOW on."""
    low, high, rounding = word(record, 0), word(record, 1), word(record, 2)
    if rounding == EXACT:
        finish_exact(acc, acc_bytes, rows, header, target, row_bytes, count, low, high)
    elif rounding == EXACT_AWAY:
        finish_exact_away(acc, acc_bytes, rows, header, target, row_bytes, count, low, high)
    else:
        finish_nearest(acc, acc_bytes, rows, header, target, row_bytes, count, low, high)


@jit
def multiply(a, a_bytes, rows, sums, matrix, first, last, target, row_bytes, acc):
    """Multiply rows of bytes with blocks of columns.

    Fewer rows than a micro-kernel's are read as that many; what the others hold is of no account.

    Args:
        a: the rows, unsigned.
        a_bytes: from one row to the next.
        rows: how many.
        sums: what each row adds to its accumulators, int32.
        matrix: see ``MATRIX``.
        first: block of 16 columns.
        last: block behind the last one.
        target: first row of results; of all columns.
        row_bytes: from one to the next.
        acc: memory for accumulators.
    """
    size, steps = word(matrix, BLOCK_BYTES), word(matrix, STEPS)
    outputs, record = word(matrix, OUTPUTS), matrix + 8 * LOW
    n = first
    while n < last:
        weights, header = word(matrix, WEIGHTS) + n * size, word(matrix, HEADERS) + n * HEADER_BYTES
        place = target + 16 * n
        if rows == 1:
            dot_single(a, a_bytes, weights, size, steps, header, sums, acc)
            width, height = SINGLE, 1
            finish_blocks(
                acc, width, 1, header, place, row_bytes, outputs - 16 * n, last - n, record
            )
        elif n + WIDE <= last:
            width, height = WIDE, WIDE_ROWS
            for start in range(0, rows, WIDE_ROWS):
                m = max(min(start, rows - WIDE_ROWS), 0)
                dot_wide(a + m * a_bytes, a_bytes, weights, size, steps, header, sums + 4 * m, acc)
                finish_blocks(
                    acc, width, min(height, rows), header, place + m * row_bytes, row_bytes,
                    outputs - 16 * n, width, record,
                )  # fmt: skip
        else:
            width, height = 1, NARROW_ROWS
            for start in range(0, rows, NARROW_ROWS):
                m = max(min(start, rows - NARROW_ROWS), 0)
                dot_narrow(
                    a + m * a_bytes, a_bytes, weights, size, steps, header, sums + 4 * m, acc
                )
                finish_blocks(
                    acc, 1, min(height, rows), header, place + m * row_bytes, row_bytes,
                    outputs - 16 * n, 1, record,
                )  # fmt: skip
        n += width


@jit
def finish_blocks(acc, width, rows, header, target, row_bytes, columns, blocks_left, record):
    """Store *width* blocks of accumulators, as far as there are columns."""
    for j in range(min(width, blocks_left)):
        finish_rows(
            acc + 64 * j,
            64 * width,
            rows,
            header + HEADER_BYTES * j,
            target + 16 * j,
            row_bytes,
            columns - 16 * j,
            record,
        )


@jit
def add_rows(a, a_bytes, rows, depth, factor, sums):
    """Store *factor* times the sum of each row's bytes, int32."""
    for m in range(rows):
        store_i32(sums + 4 * m, sum_bytes(a, depth) * factor)
        a += a_bytes
