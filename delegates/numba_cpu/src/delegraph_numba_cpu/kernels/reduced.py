"""What becomes of reduced values, and reductions to positions."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.blocks import reduced as blocks
from delegraph_numba_cpu.kernels import registers as r
from delegraph_numba_cpu.kernels.fixed_point import INT32_MAX, INT32_MIN
from delegraph_numba_cpu.kernels.lanes import Lanes
from delegraph_numba_cpu.kernels.machine import (
    I32,
    I64,
    jit,
    load_f32,
    load_i8,
    load_i32,
    load_u8,
    real,
    store_i32,
    store_i64,
    store_u8,
    word,
)
from delegraph_numba_cpu.kernels.registry import kernel
from delegraph_numba_cpu.kernels.vector_ir import first_lanes, integer, splat

(
    SOURCE, TARGET, COUNT, LOW, HIGH, SUBTRAHEND, MULTIPLIER, SHIFT, PERIOD, UP, BIAS,
) = blocks.SCALE.slots(*blocks.SCALE.names)  # fmt: skip

FLOAT32, INT8, UINT8, INT32 = blocks.ARG_KINDS.values()


@kernel(blocks.SCALE)
def scale(block, tile, worker):
    """Turn sums into bytes, in fixed point."""
    period, up = word(block, PERIOD), word(block, UP)
    for start in range(0, word(block, COUNT), period):
        for i in range(0, period, r.LANES):
            sums = r.load_ints(word(block, SOURCE) + 4 * (start + i), period - i, r.ints(0))
            value = scaled_sums(
                r.add_ints(sums, r.ints(-word(block, SUBTRAHEND))),
                word(block, MULTIPLIER),
                max(word(block, SHIFT), 0),
                max(-word(block, SHIFT), 0),
                up - i,
            )
            value = r.add_ints(value, r.ints(word(block, BIAS)))
            value = r.larger_ints(value, r.ints(word(block, LOW)))
            value = r.smaller_ints(value, r.ints(word(block, HIGH)))
            r.store_low_bytes(word(block, TARGET) + start + i, value, period - i)


@intrinsic
def scaled_sums(context, x, multiplier, left, right, up):
    """Return what :func:`fixed_point.scaled` gives for each int32; halves of the first *up* go up.

    At most one of the shifts *left* and *right* is not 0.
    """

    def generate(lowering, builder, signature, arguments):
        x, multiplier, left, right, up = arguments
        count = x.type.count

        def copies(number):
            return Lanes(builder, splat(builder, number, count))

        shifted = Lanes(builder, x) << copies(builder.trunc(left, I32))
        product = shifted.widen(I64, signed=True) * copies(multiplier)
        high = ((product + (1 << 30)) >> 31).at_most(INT32_MAX)
        half = copies(builder.lshr(builder.shl(integer(1), right), integer(1)))
        is_up = Lanes(builder, first_lanes(builder, up, count))
        is_down = (high < 0) & (is_up ^ 1)
        has_half = copies(builder.icmp_signed(">", right, integer(0)))
        half = (is_down & has_half).choose(half - 1, half)
        return ((high + half) >> copies(right)).narrow(I32).value

    signature = r.INTS(r.INTS, types.int64, types.int64, types.int64, types.int64)
    return signature, generate


REAL_ZERO, REAL_SCALE, REAL_BIAS = blocks.SCALE_REAL.slots("zero", "scale", "bias")


@kernel(blocks.SCALE_REAL)
def scale_real(block, tile, worker):
    """Turn sums into bytes, in float32."""
    for i in range(word(block, COUNT)):
        product = real(block, REAL_SCALE) * np.float32(load_i32(word(block, SOURCE) + 4 * i))
        value = product + real(block, REAL_BIAS)
        whole = np.trunc(value)
        rest = np.abs(value - whole)
        number = np.int64(whole)
        if rest >= np.float32(0.5):
            number += 1 if value > 0 else -1
        number += word(block, REAL_ZERO)
        store_u8(word(block, TARGET) + i, min(max(number, word(block, LOW)), word(block, HIGH)))


I_SOURCE, I_TARGET, I_OUTER, I_LENGTH, I_INNER, I_TILES, I_OPERATION = blocks.INT32.slots(
    *blocks.INT32.names
)


@kernel(blocks.INT32)
def int32(block, tile, worker):
    """Reduce int32, one output after another."""
    length, inner, operation = word(block, I_LENGTH), word(block, I_INNER), word(block, I_OPERATION)
    outputs, tiles = word(block, I_OUTER) * inner, word(block, I_TILES)
    for i in range(outputs * tile // tiles, outputs * (tile + 1) // tiles):
        source = word(block, I_SOURCE) + 4 * (i // inner * length * inner + i % inner)
        value = reduced_int32(source, length, 4 * inner, operation)
        store_i32(word(block, I_TARGET) + 4 * i, value)


@jit
def reduced_int32(source, length, step, operation):
    """Return the reduction of elements that lie *step* bytes apart."""
    total, product, largest, smallest = 0, 1, INT32_MIN, INT32_MAX
    for k in range(length):
        value = load_i32(source + step * k)
        total += value
        product *= value
        largest = max(largest, value)
        smallest = min(smallest, value)
    if operation == blocks.MEAN:
        mean = abs(total) // max(length, 1)
        return mean if total >= 0 else -mean
    if operation == blocks.MAX:
        return largest
    if operation == blocks.MIN:
        return smallest
    return product if operation == blocks.PRODUCT else total


A_SOURCE, A_TARGET, A_OUTER, A_LENGTH, A_INNER, A_KIND, A_SMALLEST, A_WIDE, A_TILES = (
    blocks.ARG.slots(*blocks.ARG.names)
)


def searcher(load, size):
    """Return a function that finds the first largest or smallest element."""

    @jit
    def find(source, length, step, smallest):
        best, position = load(source), 0
        for k in range(1, length):
            value = load(source + size * step * k)
            if value < best if smallest else value > best:
                best, position = value, k
        return position

    return find


find_f32, find_s8 = searcher(load_f32, 4), searcher(load_i8, 1)
find_u8, find_i32 = searcher(load_u8, 1), searcher(load_i32, 4)


def row_searcher(load, size, fill, start, turned, larger, fold, cut):
    """Return a function that finds the first largest or smallest element of a row, by vectors.

    Args:
        load: loads a vector.
        size: bytes of an element.
        fill: makes a vector of copies of a number.
        start: what no element is below, turned or not.
        turned: turns the order of the elements of a vector round, if told.
        larger: returns the larger elements of two vectors.
        fold: returns the largest element of one.
        cut: keeps the first lanes of a vector.
    """

    @jit
    def piece(source, rest, smallest, none):
        return cut(turned(load(source, rest, none), smallest), rest, none)

    @jit
    def find(source, length, smallest):
        none = fill(start)
        best = none
        for i in range(0, length, r.LANES):
            best = larger(best, piece(source + i * size, length - i, smallest, none))
        best = fill(fold(best))
        for i in range(0, length, r.LANES):
            lane = r.first_equal(piece(source + i * size, length - i, smallest, none), best)
            if lane < r.LANES:
                return i + lane
        return 0

    return find


@jit
def turned_floats(vector, is_turned):
    """Return the vector, or its negation."""
    return r.multiply_floats(vector, r.floats(np.float32(-1.0))) if is_turned else vector


@jit
def turned_ints(vector, is_turned):
    """Return the vector, or its complement."""
    return r.flip_ints(vector, r.ints(-1)) if is_turned else vector


row_f32 = row_searcher(
    r.load_floats, 4, r.floats, np.float32("-inf"), turned_floats, r.larger_floats,
    r.folder(r.FLOATS, r.larger), r.cut_floats,
)  # fmt: skip
row_s8, row_u8 = (
    row_searcher(
        load, 1, r.ints, -256, turned_ints, r.larger_ints, r.folder(r.INTS, r.larger), r.cut_ints
    )
    for load in (r.widen_signed, r.widen_unsigned)
)


@jit
def found_in_row(source, length, kind, smallest):
    """Return the position in a row of a kind other than int32."""
    if kind == FLOAT32:
        return row_f32(source, length, smallest)
    return row_s8(source, length, smallest) if kind == INT8 else row_u8(source, length, smallest)


@kernel(blocks.ARG)
def arg(block, tile, worker):
    """Store positions."""
    length, inner, kind = word(block, A_LENGTH), word(block, A_INNER), word(block, A_KIND)
    outputs, tiles = word(block, A_OUTER) * inner, word(block, A_TILES)
    smallest, source = word(block, A_SMALLEST), word(block, A_SOURCE)
    shortest = 4 * r.LANES if kind == FLOAT32 else 0  # rows from which vectors pay
    for i in range(outputs * tile // tiles, outputs * (tile + 1) // tiles):
        first = i // inner * length * inner + i % inner
        if inner == 1 and kind != INT32 and length >= shortest:
            size = 4 if kind == FLOAT32 else 1
            position = found_in_row(source + size * first, length, kind, smallest)
        elif kind == FLOAT32:
            position = find_f32(source + 4 * first, length, inner, smallest)
        elif kind == INT8:
            position = find_s8(source + first, length, inner, smallest)
        elif kind == UINT8:
            position = find_u8(source + first, length, inner, smallest)
        else:
            position = find_i32(source + 4 * first, length, inner, smallest)
        if word(block, A_WIDE):
            store_i64(word(block, A_TARGET) + 8 * i, position)
        else:
            store_i32(word(block, A_TARGET) + 4 * i, position)
