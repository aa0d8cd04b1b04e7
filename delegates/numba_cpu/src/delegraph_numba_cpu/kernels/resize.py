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


def bilinear(instruction, itemsize, share_of, load, pair, blend, narrow=1 << 62):
    """Define the kernel of a resizing instruction.

    Args:
        instruction: name of the kernel, and of the operands that it reads.
        itemsize: bytes of an element.
        share_of: function that reads the second pixel's share of the result from a table entry.
        load: function that loads a vector of a pixel's first channels, as numbers of the type that
            is computed with.
        pair: function ``(top_left, top_right, bottom_left, bottom_right, share_y)`` that returns
            the part of the result that does not depend on the column.
        blend: function ``(target, part, share_y, share_x, count)`` that stores the first *count*
            channels of the result.
        narrow: largest number of channels for which pixels stay in registers from one column to the
            next. For more channels, weights are computed once for all channels of a column.
    """

    @jit
    def blend_row(target, top, bottom, share_y, across, width, count, step):
        """Store *width* pixels of the result, blended from the input rows *top* and *bottom*.

        Only the first *count* channels of each pixel are stored. Pixels of *target* are *step*
        bytes apart. *share_y* is the share of the row *bottom*. *across* is the address of a table
        with two positions and the second's share for each column.
        """
        known_left, known_right = -1, -1
        none = load(top, 0)
        part = pair(none, none, none, none, share_y)
        for _ in range(width):
            left, right = load_i64(across), load_i64(across + 8)
            if left != known_left or right != known_right:
                known_left, known_right = left, right
                part = pair(
                    load(top + left, count), load(top + right, count),
                    load(bottom + left, count), load(bottom + right, count), share_y,
                )  # fmt: skip
            blend(target, part, share_y, share_of(across, 2), count)
            across += TAP_BYTES
            target += step

    @jit
    def blend_columns(target, top, bottom, share_y, across, width, channels):
        """Store a row of *width* pixels of all channels, blended from the rows *top* and *bottom*.

        The pixels have *channels* channels, at least LANES. For other arguments, see
        :func:`blend_row`.
        """
        for _ in range(width):
            left, right, share_x = load_i64(across), load_i64(across + 8), share_of(across, 2)
            for i in range(0, channels, r.LANES):
                first = min(i, channels - r.LANES) * itemsize
                a, b = load(top + left + first, r.LANES), load(top + right + first, r.LANES)
                c, d = load(bottom + left + first, r.LANES), load(bottom + right + first, r.LANES)
                blend(target + first, pair(a, b, c, d, share_y), share_y, share_x, r.LANES)
            across += TAP_BYTES
            target += channels * itemsize

    @kernel(instruction)
    def run(record, tile, worker):
        rows, tiles = word(record, ROWS), word(record, TILES)
        height, width, channels = (
            word(record, OUT_HEIGHT),
            word(record, OUT_WIDTH),
            word(record, CHANNELS),
        )
        across, step = word(record, ACROSS), channels * itemsize
        last = max(channels - r.LANES, 0)  # the last piece of a pixel may overlap the one before
        for row in range(rows * tile // tiles, rows * (tile + 1) // tiles):
            down = word(record, DOWN) + row % height * TAP_BYTES
            image = word(record, SOURCE) + row // height * word(record, IMAGE_BYTES)
            top, bottom = image + load_i64(down), image + load_i64(down + 8)
            target = word(record, TARGET) + row * width * step
            share_y = share_of(down, 2)
            if channels > narrow:
                blend_columns(target, top, bottom, share_y, across, width, channels)
                continue
            for i in range(0, last, r.LANES):
                first = i * itemsize
                blend_row(
                    target + first, top + first, bottom + first, share_y, across, width, r.LANES,
                    step,
                )  # fmt: skip
            first = last * itemsize
            blend_row(
                target + first, top + first, bottom + first, share_y, across, width,
                channels - last, step,
            )  # fmt: skip


@jit
def load_f32(address, count):
    """Return a vector of the first *count* floats at an address."""
    return r.load_floats(address, count, r.floats(0.0))


@jit
def load_u8(address, count):
    """Return a vector of the first *count* uint8 numbers at an address, as floats."""
    return r.to_floats(r.widen_unsigned(address, count, r.ints(0)))


@jit
def load_s8(address, count):
    """Return a vector of the first *count* int8 numbers at an address, as int32."""
    return r.widen_signed(address, count, r.ints(0))


@jit
def all_four(a, b, c, d, share_y):
    """Return the four pixels unchanged.

    *share_y* is not used: since floats are rounded, no part of the result can be computed before.
    """
    return a, b, c, d


@jit
def float_weights(share_y, share_x):
    """Return vectors of the weights of four input pixels: both at the top, then both below.

    *share_y* is the share of the pixels below, and *share_x* that of the pixels to the right.
    """
    one = np.float32(1.0)
    top, bottom = r.floats(one - share_y), r.floats(share_y)
    left, right = r.floats(one - share_x), r.floats(share_x)
    return (
        r.multiply_floats(top, left),
        r.multiply_floats(top, right),
        r.multiply_floats(bottom, left),
        r.multiply_floats(bottom, right),
    )


@jit
def blend_f32(target, pixels, share_y, share_x, count):
    """Store the weighted mean of four pixels of float32; see *blend* of :func:`bilinear`."""
    a, b, c, d = pixels
    weight_a, weight_b, weight_c, weight_d = float_weights(share_y, share_x)
    value = r.add_product(b, weight_b, r.multiply_floats(a, weight_a))
    value = r.add_product(d, weight_d, r.add_product(c, weight_c, value))
    r.store_floats(target, value, count)


@jit
def blend_u8(target, pixels, share_y, share_x, count):
    """Store the weighted mean of four uint8 *pixels*, computed in float32, for *count* channels.

    Each product and each sum is rounded, as in the official kernel.
    """
    a, b, c, d = pixels
    weight_a, weight_b, weight_c, weight_d = float_weights(share_y, share_x)
    value = r.add_floats(r.multiply_floats(a, weight_a), r.multiply_floats(b, weight_b))
    value = r.add_floats(value, r.multiply_floats(c, weight_c))
    value = r.add_floats(value, r.multiply_floats(d, weight_d))
    r.store_low_bytes(target, r.to_ints(r.add_floats(value, r.floats(0.5))), count)


@jit
def start_and_slope(a, b, c, d, share_y):
    """Return weighted means of the two left pixels, and how much larger those at the right are.

    All pixels are vectors of channels: *a* and *b* are the upper pixels at the left and the right,
    *c* and *d* the lower ones. *share_y* is the share of the lower pixels. The means are in units
    of 2**-20; the differences and *share_y* are in units of 2**-10. Sums of integers are exact in
    any order, so each column needs only one product.
    """
    top, bottom = r.ints(ONE - share_y), r.ints(share_y)
    left = r.add_ints(r.multiply_ints(a, top), r.multiply_ints(c, bottom))
    right = r.add_ints(r.multiply_ints(b, top), r.multiply_ints(d, bottom))
    slope = r.add_ints(right, r.multiply_ints(left, r.ints(-1)))
    return r.multiply_ints(left, r.ints(ONE)), slope


@jit
def blend_s8(target, part, share_y, share_x, count):
    """Store ``(start + slope * share_x) / 2**20`` of *count* channels, as int8.

    *part* is the start and the slope. Halves are rounded away from zero.
    """
    start, slope = part
    value = r.add_ints(start, r.multiply_ints(slope, r.ints(share_x)))
    r.store_low_bytes(target, r.rounded_shift_20(value), count)


bilinear(instructions.BILINEAR_F32, 4, real, load_f32, all_four, blend_f32, 2 * r.LANES)
bilinear(instructions.BILINEAR_U8, 1, real, load_u8, all_four, blend_u8)
bilinear(instructions.BILINEAR_S8, 1, word, load_s8, start_and_slope, blend_s8)
