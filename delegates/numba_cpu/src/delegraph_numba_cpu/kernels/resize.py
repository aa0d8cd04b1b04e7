"""Bilinear resizing: each output pixel mixes four input pixels, channel by channel."""

from __future__ import annotations

import numpy as np

from delegraph_numba_cpu.codegen import registers as r
from delegraph_numba_cpu.codegen.intrinsics import jit, load_i64, real, word
from delegraph_numba_cpu.codegen.registry import kernel
from delegraph_numba_cpu.instructions import resize as instructions

SOURCE, TARGET, IMAGE_BYTES, CHANNELS, OUT_HEIGHT, OUT_WIDTH, DOWN, ACROSS, ROWS, TILES = (
    instructions.BILINEAR_F32.slots(*instructions.BILINEAR_F32.names)
)
TAP_BYTES = 8 * instructions.TAP_WORDS
ONE = 1 << 10


def bilinear(instruction, itemsize, share_of, mix):
    """Define the kernel of a resizing instruction.

    Args:
        instruction: name of the kernel, and of the operands that it reads.
        itemsize: bytes of an element.
        share_of: function that reads the second pixel's share of the result from a table entry.
        mix: function ``(top, bottom, left, right, share_y, share_x, target, channels)`` that mixes
            four pixels. *top* and *bottom* are addresses of rows, *left* and *right* byte offsets
            in them.
    """

    def run(record, tile, worker):
        rows, tiles = word(record, ROWS), word(record, TILES)
        height, width, channels = (
            word(record, OUT_HEIGHT),
            word(record, OUT_WIDTH),
            word(record, CHANNELS),
        )
        target = word(record, TARGET)
        for row in range(rows * tile // tiles, rows * (tile + 1) // tiles):
            down = word(record, DOWN) + row % height * TAP_BYTES
            image = word(record, SOURCE) + row // height * word(record, IMAGE_BYTES)
            top, bottom = image + load_i64(down), image + load_i64(down + 8)
            share_y = share_of(down, 2)
            place = target + row * width * channels * itemsize
            for column in range(width):
                across = word(record, ACROSS) + column * TAP_BYTES
                left, right = load_i64(across), load_i64(across + 8)
                mix(top, bottom, left, right, share_y, share_of(across, 2), place, channels)
                place += channels * itemsize

    kernel(instruction)(run)


@jit
def mix_f32(top, bottom, left, right, share_y, share_x, target, channels):
    """Store the weighted mean of four pixels of float32; see *mix* of :func:`bilinear`."""
    one = np.float32(1.0)
    a, b = r.floats((one - share_y) * (one - share_x)), r.floats((one - share_y) * share_x)
    c, d = r.floats(share_y * (one - share_x)), r.floats(share_y * share_x)
    zero = r.floats(0.0)
    for i in range(0, channels, r.LANES):
        left_i, right_i, rest = left + 4 * i, right + 4 * i, channels - i
        value = r.multiply_floats(r.load_floats(top + left_i, rest, zero), a)
        value = r.add_product(r.load_floats(top + right_i, rest, zero), b, value)
        value = r.add_product(r.load_floats(bottom + left_i, rest, zero), c, value)
        value = r.add_product(r.load_floats(bottom + right_i, rest, zero), d, value)
        r.store_floats(target + 4 * i, value, rest)


@jit
def mix_u8(top, bottom, left, right, share_y, share_x, target, channels):
    """Store the weighted mean of four uint8 pixels, computed in float32; see :func:`bilinear`.

    Each product and each sum is rounded, as in the official kernel.
    """
    one, zero, half = np.float32(1.0), r.ints(0), r.floats(0.5)
    a, b = r.floats((one - share_y) * (one - share_x)), r.floats((one - share_y) * share_x)
    c, d = r.floats(share_y * (one - share_x)), r.floats(share_y * share_x)
    for i in range(0, channels, r.LANES):
        left_i, right_i, rest = left + i, right + i, channels - i
        value = r.multiply_floats(r.to_floats(r.widen_unsigned(top + left_i, rest, zero)), a)
        product = r.multiply_floats(r.to_floats(r.widen_unsigned(top + right_i, rest, zero)), b)
        value = r.add_floats(value, product)
        product = r.multiply_floats(r.to_floats(r.widen_unsigned(bottom + left_i, rest, zero)), c)
        value = r.add_floats(value, product)
        product = r.multiply_floats(r.to_floats(r.widen_unsigned(bottom + right_i, rest, zero)), d)
        value = r.add_floats(r.add_floats(value, product), half)
        r.store_low_bytes(target + i, r.to_ints(value), rest)


@jit
def mix_s8(top, bottom, left, right, share_y, share_x, target, channels):
    """Store the weighted mean of four int8 pixels, halves away from zero; see :func:`bilinear`."""
    zero = r.ints(0)
    a, b = r.ints((ONE - share_y) * (ONE - share_x)), r.ints((ONE - share_y) * share_x)
    c, d = r.ints(share_y * (ONE - share_x)), r.ints(share_y * share_x)
    for i in range(0, channels, r.LANES):
        left_i, right_i, rest = left + i, right + i, channels - i
        value = r.multiply_ints(r.widen_signed(top + left_i, rest, zero), a)
        value = r.add_ints(value, r.multiply_ints(r.widen_signed(top + right_i, rest, zero), b))
        value = r.add_ints(value, r.multiply_ints(r.widen_signed(bottom + left_i, rest, zero), c))
        value = r.add_ints(value, r.multiply_ints(r.widen_signed(bottom + right_i, rest, zero), d))
        r.store_low_bytes(target + i, r.rounded_shift_20(value), rest)


bilinear(instructions.BILINEAR_F32, 4, real, mix_f32)
bilinear(instructions.BILINEAR_U8, 1, real, mix_u8)
bilinear(instructions.BILINEAR_S8, 1, word, mix_s8)
