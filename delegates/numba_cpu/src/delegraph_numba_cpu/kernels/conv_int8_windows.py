"""Copies windows of int8 images to rows of bytes, with padding where a window leaves the image."""

from __future__ import annotations

from delegraph_numba_cpu.codegen.conv_int8_micro_kernels import (
    flip_1,
    flip_4,
    flip_8,
    flip_16,
    flip_64,
)
from delegraph_numba_cpu.codegen.intrinsics import fill_bytes, jit, word
from delegraph_numba_cpu.codegen.strided_copies import copy_part, copy_strided
from delegraph_numba_cpu.instructions import conv_int8 as instructions

(
    HEIGHT, WIDTH, CHANNELS, OUT_HEIGHT, OUT_WIDTH, KERNEL_H, KERNEL_W, STRIDE_H, STRIDE_W,
    DILATION_H, DILATION_W, TOP, LEFT, ZERO, FLIP, ROW_BYTES, IS_TRANSPOSED, LINE_BYTES,
) = instructions.WINDOWS.slots(*instructions.WINDOWS.names)  # fmt: skip


LINES_BYTES = instructions.ACC_BYTES
"""Number of bytes for padded lines, in memory that accumulators use later."""

EDGE_BYTES = 512
"""Number of bytes of a line whose copying takes as long as one window across the image's edge."""


@jit
def gather(image, windows, row, column, count, target, lines):
    """Write *count* windows along output row *row*, from *column* on, as matrix rows.

    *image* is the address of the image, *windows* that of the record ``WINDOWS``, and *target* that
    of the first matrix row. *lines* is the address of ``LINES_BYTES`` bytes of scratch memory, or 0
    if :func:`have_room` returns False.
    """
    if word(windows, IS_TRANSPOSED):
        for i in range(count):
            place = target + i * word(windows, ROW_BYTES)
            gather_transposed(image, windows, row, column + i, place)
        return
    channels, width, kernel = (
        word(windows, CHANNELS), word(windows, WIDTH), word(windows, KERNEL_W),
    )  # fmt: skip
    left, stride, row_bytes = (
        word(windows, LEFT), word(windows, STRIDE_W), word(windows, ROW_BYTES),
    )  # fmt: skip
    end = column + count
    # Windows without gaps between taps that lie inside the image are copied line by line.
    first, last = end, end
    if word(windows, DILATION_W) == 1:
        first = min(max(-(-left // stride), column), end)
        last = min(max((width - kernel + left) // stride + 1, first), end)
    y = row * word(windows, STRIDE_H) - word(windows, TOP)
    edges = first - column + end - last
    if lines and width * channels < EDGE_BYTES * edges:
        pad_lines(image, windows, y, lines)
        copy_padded(windows, column, count, target, lines)
        return
    for _ in range(word(windows, KERNEL_H)):
        if y < 0 or y >= word(windows, HEIGHT):
            fill_strided(target, row_bytes, count, kernel * channels, word(windows, ZERO))
        else:
            line = image + y * width * channels
            gather_edge(line, windows, column, first, target)
            copy_strided(
                line + (first * stride - left) * channels,
                stride * channels,
                target + (first - column) * row_bytes,
                row_bytes,
                last - first,
                kernel * channels,
                word(windows, FLIP),
            )
            gather_edge(line, windows, last, end, target + (last - column) * row_bytes)
        target += kernel * channels
        y += word(windows, DILATION_H)


@jit
def padded_bytes(windows):
    """Return the number of bytes of a line of the image with its padding at both sides.

    *windows* is the address of the record that describes the windows.
    """
    seen = (word(windows, OUT_WIDTH) - 1) * word(windows, STRIDE_W) + word(windows, KERNEL_W)
    return max(word(windows, LEFT) + word(windows, WIDTH), seen) * word(windows, CHANNELS)


@jit
def have_room(windows):
    """Whether taps have no gaps between them, and padded lines fit into ``LINES_BYTES``.

    Words of a kept program may be any numbers; each factor is checked first, so that products do
    not overflow.
    """
    if word(windows, DILATION_W) != 1 or word(windows, LEFT) < 0:
        return False
    for slot in (LEFT, WIDTH, OUT_WIDTH, STRIDE_W, KERNEL_W, KERNEL_H, CHANNELS):
        if word(windows, slot) > LINES_BYTES:
            return False
    return word(windows, KERNEL_H) * padded_bytes(windows) <= LINES_BYTES


@jit
def pad_lines(image, windows, y, target):
    """Write all image lines that windows of one output row read, with their padding.

    Args:
        image: address of the image.
        windows: address of the record that describes the windows.
        y: number of the first line, maybe outside of the image.
        target: address to which the lines are written.
    """
    size, line_bytes = word(windows, WIDTH) * word(windows, CHANNELS), padded_bytes(windows)
    place = target + word(windows, LEFT) * word(windows, CHANNELS)
    fill_bytes(target, word(windows, ZERO), word(windows, KERNEL_H) * line_bytes)
    for _ in range(word(windows, KERNEL_H)):
        if 0 <= y < word(windows, HEIGHT):
            copy_flipped(image + y * size, place, size, word(windows, FLIP))
        place += line_bytes
        y += word(windows, DILATION_H)


@jit
def copy_padded(windows, column, count, target, lines):
    """Write *count* windows, from output column *column* on, as matrix rows from *target* on.

    *lines* is the address of the lines that :func:`pad_lines` has written; *windows* is that of the
    record that describes the windows.
    """
    row_bytes, step = word(windows, ROW_BYTES), word(windows, STRIDE_W) * word(windows, CHANNELS)
    line_bytes, size = padded_bytes(windows), word(windows, KERNEL_W) * word(windows, CHANNELS)
    source = lines + column * step
    for _ in range(word(windows, KERNEL_H)):
        copy_strided(source, step, target, row_bytes, count, size, 0)
        source, target = source + line_bytes, target + size


@jit
def gather_edge(line, windows, column, end, target):
    """Write one line of windows that cross an edge of the image, or whose taps have gaps.

    Args:
        line: address of the image's line.
        windows: address of the record that describes the windows.
        column: number of the first window's output column.
        end: number of the column after the last one.
        target: address to which the first window's line is written.
    """
    if word(windows, DILATION_W) != 1:
        gather_taps(line, windows, column, end, target)
        return
    channels, width, flip = word(windows, CHANNELS), word(windows, WIDTH), word(windows, FLIP)
    kernel, zero = word(windows, KERNEL_W), word(windows, ZERO)
    for x in range(column, end):
        start = x * word(windows, STRIDE_W) - word(windows, LEFT)
        first = min(max(-start, 0), kernel)
        last = max(min(width - start, kernel), first)
        low, high, size = first * channels, last * channels, kernel * channels
        copy_part(line + start * channels, target, size, low, high, zero, flip)
        target += word(windows, ROW_BYTES)


@jit
def gather_taps(line, windows, column, end, target):
    """Write one line of the windows of output columns *column* to *end*, tap by tap.

    For the arguments see :func:`gather_edge`.
    """
    if column >= end:
        return
    channels, width, flip = word(windows, CHANNELS), word(windows, WIDTH), word(windows, FLIP)
    stride, row_bytes, zero = (
        word(windows, STRIDE_W), word(windows, ROW_BYTES), word(windows, ZERO),
    )  # fmt: skip
    offset = -word(windows, LEFT)
    for _ in range(word(windows, KERNEL_W)):
        first = min(max(-(offset // stride), column), end)
        last = min(max((width - 1 - offset) // stride + 1, first), end)
        fill_strided(target, row_bytes, first - column, channels, zero)
        copy_strided(
            line + (first * stride + offset) * channels,
            stride * channels,
            target + (first - column) * row_bytes,
            row_bytes,
            last - first,
            channels,
            flip,
        )
        place = target + (last - column) * row_bytes
        fill_strided(place, row_bytes, end - last, channels, zero)
        target += channels
        offset += word(windows, DILATION_W)


@jit
def fill_strided(target, step, count, size, value):
    """Fill *size* bytes with *value* at each of *count* places, *step* bytes apart.

    The first place is at the address *target*.
    """
    for _ in range(count):
        fill_bytes(target, value, size)
        target += step


@jit
def copy_flipped(source, target, count, flip):
    """Copy exactly *count* bytes from *source* to *target*, each xored with *flip*."""
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
def gather_transposed(image, windows, row, column, target):
    """Write to *target* all inputs that one output pixel of TRANSPOSE_CONV reads, as a matrix row.

    The output pixel is in row *row* and column *column*. *image* is the address of the input, and
    *windows* that of the record that describes the windows.
    """
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
