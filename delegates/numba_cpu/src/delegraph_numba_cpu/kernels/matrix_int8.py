"""Rows of bytes times weights, and windows of images as such rows."""
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
    flip_1,
    flip_4,
    flip_8,
    flip_16,
    flip_64,
)
from delegraph_numba_cpu.kernels.machine import fill_bytes, jit, load_u8, store_i32, word

HEADER_BYTES = blocks.HEADER_BYTES
EXACT, EXACT_AWAY = blocks.EXACT, blocks.EXACT_AWAY

WEIGHTS, HEADERS, DEPTH, STEPS, BLOCK_BYTES, OUTPUTS, LOW, HIGH, ROUNDING, SUM_FACTOR = (
    blocks.MATRIX.slots(*blocks.MATRIX.names)
)
(
    HEIGHT, WIDTH, CHANNELS, OUT_HEIGHT, OUT_WIDTH, KERNEL_H, KERNEL_W, STRIDE_H, STRIDE_W,
    DILATION_H, DILATION_W, TOP, LEFT, ZERO, FLIP, ROW_BYTES, IS_TRANSPOSED,
) = blocks.WINDOWS.slots(*blocks.WINDOWS.names)  # fmt: skip


@jit
def finish_rows(acc, acc_bytes, rows, header, target, row_bytes, count, record):
    """Store rows of up to 16 results; *record* tells how they round, from word LOW on."""
    low, high, rounding = word(record, 0), word(record, 1), word(record, 2)
    if rounding == EXACT:
        for _ in range(rows):
            finish_exact(acc, header, target, count, low, high)
            acc, target = acc + acc_bytes, target + row_bytes
    elif rounding == EXACT_AWAY:
        for _ in range(rows):
            finish_exact_away(acc, header, target, count, low, high)
            acc, target = acc + acc_bytes, target + row_bytes
    else:
        for _ in range(rows):
            finish_nearest(acc, header, target, count, low, high)
            acc, target = acc + acc_bytes, target + row_bytes


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
        total = 0
        for k in range(depth):
            total += load_u8(a + k)
        store_i32(sums + 4 * m, total * factor)
        a += a_bytes


@jit
def copy_flipped(source, target, count, flip):
    """Copy bytes, each xored with *flip*; nothing beyond them is touched."""
    done = 0
    while done + 64 <= count:
        flip_64(source + done, target + done, flip)
        done += 64
    while done + 16 <= count:
        flip_16(source + done, target + done, flip)
        done += 16
    if done == count:
        return
    if count >= 16:
        flip_16(source + count - 16, target + count - 16, flip)
    elif count >= 8:
        flip_8(source, target, flip)
        flip_8(source + count - 8, target + count - 8, flip)
    elif count >= 4:
        flip_4(source, target, flip)
        flip_4(source + count - 4, target + count - 4, flip)
    else:
        for i in range(count):
            flip_1(source + i, target + i, flip)


@jit
def gather(image, windows, row, column, count, target):
    """Lay out *count* windows along a row of the output, from *column* on, as matrix rows."""
    row_bytes = word(windows, ROW_BYTES)
    for _ in range(count):
        if word(windows, IS_TRANSPOSED):
            gather_transposed(image, windows, row, column, target)
        else:
            gather_window(image, windows, row, column, target)
        column, target = column + 1, target + row_bytes


@jit
def gather_window(image, windows, row, column, target):
    """Lay out one window."""
    channels, width, flip = word(windows, CHANNELS), word(windows, WIDTH), word(windows, FLIP)
    kernel, dilation, zero = word(windows, KERNEL_W), word(windows, DILATION_W), word(windows, ZERO)
    y = row * word(windows, STRIDE_H) - word(windows, TOP)
    x = column * word(windows, STRIDE_W) - word(windows, LEFT)
    before = min(max(-x, 0), kernel)  # taps left of the image, if they are neighbours
    behind = min(max(x + kernel - width, 0), kernel - before)
    for _ in range(word(windows, KERNEL_H)):
        line = image + y * width * channels
        if y < 0 or y >= word(windows, HEIGHT):
            fill_bytes(target, zero, kernel * channels)
        elif dilation == 1:
            inside = (kernel - before - behind) * channels
            if before:
                fill_bytes(target, zero, before * channels)
            copy_flipped(line + (x + before) * channels, target + before * channels, inside, flip)
            if behind:
                fill_bytes(target + before * channels + inside, zero, behind * channels)
        else:
            for i in range(kernel):
                at = x + i * dilation
                if 0 <= at < width:
                    copy_flipped(line + at * channels, target + i * channels, channels, flip)
                else:
                    fill_bytes(target + i * channels, zero, channels)
        target += kernel * channels
        y += word(windows, DILATION_H)


@jit
def gather_transposed(image, windows, row, column, target):
    """Lay out what reaches one output of a transposed convolution."""
    channels, width, flip = word(windows, CHANNELS), word(windows, WIDTH), word(windows, FLIP)
    stride_h, stride_w = word(windows, STRIDE_H), word(windows, STRIDE_W)
    for i in range(word(windows, KERNEL_H)):
        y = row + word(windows, TOP) - i
        for j in range(word(windows, KERNEL_W)):
            x = column + word(windows, LEFT) - j
            if (
                0 <= y < word(windows, HEIGHT) * stride_h
                and 0 <= x < width * stride_w
                and y % stride_h == 0
                and x % stride_w == 0
            ):
                source = image + (y // stride_h * width + x // stride_w) * channels
                copy_flipped(source, target, channels, flip)
            else:
                fill_bytes(target, word(windows, ZERO), channels)
            target += channels
