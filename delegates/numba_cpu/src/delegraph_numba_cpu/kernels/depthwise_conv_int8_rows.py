"""Addresses of the rows of an 8-bit image, four of which depthwise convolutions pack into words."""

from __future__ import annotations

from delegraph_numba_cpu.codegen.conv_int8_micro_kernels import fill_dwords
from delegraph_numba_cpu.codegen.intrinsics import jit, word
from delegraph_numba_cpu.kernels.conv_int8_windows import DILATION_H, HEIGHT, KERNEL_H


@jit
def row_address(image, modulus, row_bytes, windows, row, nothing):
    """Return the address of row *row* of the input, or *nothing* for a row outside the image.

    Row *r* is stored as row *r* modulo *modulus* of the memory at *image*, where rows have
    *row_bytes* bytes. *windows* is the address of the record that describes the windows.
    """
    if row < 0 or row >= word(windows, HEIGHT):
        return nothing
    return image + row % modulus * row_bytes


@jit
def four_rows(image, modulus, row_bytes, windows, first, y, nothing):
    """Return the addresses of four rows of a window, from its row *first* on.

    A row after the window's last row, or outside the image, has the address *nothing*. *y* is the
    number in the image of the first of the four rows. Row *r* of the image is at
    ``image + r % modulus * row_bytes``.
    """
    dilation, left = word(windows, DILATION_H), word(windows, KERNEL_H) - first
    a = row_address(image, modulus, row_bytes, windows, y, nothing)
    b = row_address(image, modulus, row_bytes, windows, y + dilation, nothing)
    c = row_address(image, modulus, row_bytes, windows, y + 2 * dilation, nothing)
    d = row_address(image, modulus, row_bytes, windows, y + 3 * dilation, nothing)
    b = b if left > 1 else nothing
    c = c if left > 2 else nothing
    d = d if left > 3 else nothing
    return a, b, c, d


@jit
def fill_columns(line, columns, column_bytes, value):
    """Fill *columns* columns, of *column_bytes* bytes, with copies of the 32-bit word *value*.

    They begin at the address *line*.
    """
    for place in range(line, line + columns * column_bytes, 64):
        fill_dwords(place, value)
