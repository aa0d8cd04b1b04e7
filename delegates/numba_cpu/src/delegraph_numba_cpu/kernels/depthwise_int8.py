"""One row of a depthwise convolution of bytes."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc"

from __future__ import annotations

from delegraph_numba_cpu.blocks import conv_int8 as blocks
from delegraph_numba_cpu.kernels.dot_int8 import (
    TAP_PIXELS,
    dot_tap,
    dot_taps,
    fill_dwords,
    pack_column,
)
from delegraph_numba_cpu.kernels.machine import jit, word
from delegraph_numba_cpu.kernels.matrix_int8 import (
    DILATION_H,
    DILATION_W,
    FLIP,
    HEADER_BYTES,
    HEIGHT,
    KERNEL_H,
    KERNEL_W,
    LEFT,
    OUT_WIDTH,
    STRIDE_H,
    STRIDE_W,
    TOP,
    WIDTH,
    ZERO,
    finish_rows,
)

TAPS = blocks.TAPS
WEIGHTS, HEADERS, OFFSETS, COUNT, LOW, CHANNELS, BLOCK_BYTES, GROUPS = TAPS.slots(
    "weights", "headers", "offsets", "count", "low", "channels", "block_bytes", "groups"
)


@jit
def line_columns(windows):
    """Return how many columns a packed line has, with those left and right of the image."""
    reach = (word(windows, OUT_WIDTH) - 1) * word(windows, STRIDE_W)
    return reach + (word(windows, KERNEL_W) - 1) * word(windows, DILATION_W) + 1


@jit
def row_address(image, modulus, row_bytes, windows, row, nothing):
    """Return where a row of the image is, *nothing* for one outside it.

    Args:
        image: its rows; only *modulus* of them are kept, over and over.
    """
    if row < 0 or row >= word(windows, HEIGHT):
        return nothing
    return image + row % modulus * row_bytes


@jit
def pack_line(image, modulus, windows, taps, row, channel, nothing, line):
    """Pack the rows that an output row needs, four below each other a dword, for 16 channels.

    Args:
        image: see :func:`row_address`.
        modulus: see :func:`row_address`.
        windows: see ``WINDOWS``.
        taps: see ``TAPS``.
        row: of the output.
        channel: the first of the 16.
        nothing: address of 16 bytes as they are around the image, before they are flipped.
        line: ``[groups, columns, 16]`` dwords.
    """
    width, channels = word(windows, WIDTH), word(taps, CHANNELS)
    left, columns = word(windows, LEFT), line_columns(windows)
    row_bytes, dilation = width * channels, word(windows, DILATION_H)
    kernel, flip = word(windows, KERNEL_H), word(windows, FLIP) * 0x01010101
    zero = word(windows, ZERO) * 0x01010101
    y = row * word(windows, STRIDE_H) - word(windows, TOP)
    for first in range(0, kernel, 4):
        a = row_address(image, modulus, row_bytes, windows, y, nothing)
        b = row_address(image, modulus, row_bytes, windows, y + dilation, nothing)
        c = row_address(image, modulus, row_bytes, windows, y + 2 * dilation, nothing)
        d = row_address(image, modulus, row_bytes, windows, y + 3 * dilation, nothing)
        b = b if first + 1 < kernel else nothing
        c = c if first + 2 < kernel else nothing
        d = d if first + 3 < kernel else nothing
        for x in range(-left, min(columns - left, 0)):
            fill_dwords(line + 64 * (x + left), zero)
        for x in range(min(width, columns - left)):
            at = x * channels + channel
            pack_column(
                a if a == nothing else a + at,
                b if b == nothing else b + at,
                c if c == nothing else c + at,
                d if d == nothing else d + at,
                channels - channel,
                flip,
                line + 64 * (x + left),
            )
        for x in range(width, columns - left):
            fill_dwords(line + 64 * (x + left), zero)
        line += 64 * columns
        y += 4 * dilation


@jit
def depthwise_row(image, modulus, windows, taps, row, first, last, target, memory):
    """Compute a row of the output, from one block of 16 channels to another.

    Args:
        image: see :func:`row_address`.
        modulus: see :func:`row_address`.
        windows: see ``WINDOWS``.
        taps: see ``TAPS``.
        row: of the output.
        first: block of 16 channels.
        last: block behind the last.
        target: first result of the row, of all channels.
        memory: for accumulators, the bytes around the image, and a packed line.
    """
    channels, out_width = word(taps, CHANNELS), word(windows, OUT_WIDTH)
    count, step = word(taps, COUNT), word(windows, STRIDE_W) * 64
    nothing, line = memory + blocks.ACC_BYTES - 64, memory + blocks.ACC_BYTES
    around = word(windows, ZERO) ^ word(windows, FLIP)
    fill_dwords(nothing, around * 0x01010101)
    for block in range(first, last):
        pack_line(image, modulus, windows, taps, row, 16 * block, nothing, line)
        weights = word(taps, WEIGHTS) + block * word(taps, BLOCK_BYTES)
        header = word(taps, HEADERS) + block * HEADER_BYTES
        place, left = target + 16 * block, channels - 16 * block
        x = 0
        while x < out_width:
            if x + TAP_PIXELS <= out_width:
                pixels = TAP_PIXELS
                dot_taps(line + x * step, step, weights, word(taps, OFFSETS), count, header, memory)
            else:
                pixels = 1
                dot_tap(line + x * step, step, weights, word(taps, OFFSETS), count, header, memory)
            finish_rows(
                memory, 64, pixels, header, place + x * channels, channels, left, taps + 8 * LOW
            )
            x += pixels
