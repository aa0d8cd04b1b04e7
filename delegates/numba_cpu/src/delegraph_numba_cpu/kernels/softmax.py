"""Loops of SOFTMAX and LOG_SOFTMAX; ``lowering/rows/softmax.py`` chooses among them."""

from __future__ import annotations

import math

import numpy as np
from numba import types

from delegraph_numba_cpu.codegen import math_functions
from delegraph_numba_cpu.codegen import registers as r
from delegraph_numba_cpu.codegen.intrinsics import (
    jit,
    load_f32,
    load_i16,
    load_i64,
    load_u8,
    real,
    store_f32,
    store_i8,
    store_i16,
    word,
)
from delegraph_numba_cpu.codegen.registry import kernel
from delegraph_numba_cpu.codegen.row_passes import LANES, add, float_kernel, larger, row_pass
from delegraph_numba_cpu.instructions import softmax as instructions

ZERO, ONE, INFINITY = (np.float32(x) for x in (0.0, 1.0, math.inf))

maximum_of = row_pass(lambda x, a, b: x, -math.inf, larger)
exponentials = row_pass(lambda x, maximum, beta: math_functions.exp((x - maximum) * beta), 0.0, add)
scaled = row_pass(lambda x, factor, b: x * factor)
lowered = row_pass(lambda x, maximum, by: (x - maximum) - by)
logarithm = row_pass(lambda x, a, b: math_functions.log(x))


@jit
def softmax_row(source, target, rest, results, whole, count, beta):
    """Write the softmax of *beta* times a row: exponentials divided by their sum.

    For the arguments see *row* of ``row_passes.float_kernel``.
    """
    maximum = maximum_of(source, source, rest, rest, whole, count, ZERO, ZERO)
    total = exponentials(source, target, rest, results, whole, count, maximum, beta)
    scaled(target, target, results, results, whole, count, ONE / total, ZERO)


@jit
def log_softmax_row(source, target, rest, results, whole, count, beta):
    """Write the logarithms of the softmax of a row; *beta* is unused.

    For the arguments see *row* of ``row_passes.float_kernel``.
    """
    maximum = maximum_of(source, source, rest, rest, whole, count, ZERO, ZERO)
    total = exponentials(source, target, rest, results, whole, count, maximum, ONE)
    store_f32(results, total)
    logarithm(results, results, results, results, 0, LANES, ZERO, ZERO)
    lowered(source, target, rest, results, whole, count, maximum, load_f32(results))


float_kernel(instructions.SOFTMAX, softmax_row, -INFINITY)
float_kernel(instructions.LOG_SOFTMAX, log_softmax_row, -INFINITY)

(
    SOURCE, TARGET, ROWS, LENGTH, TILES, SCRATCH, SCRATCH_BYTES, TABLE, FLIP, SCALE, HALF, LIMIT,
    ZERO_POINT,
) = instructions.SOFTMAX_8_BIT.slots(*instructions.SOFTMAX_8_BIT.names)  # fmt: skip


def softmax_kernel(definition, itemsize, store):
    """Define a kernel that computes SOFTMAX of 8-bit rows.

    Args:
        definition: name of the kernel, and of the operands that it reads.
        itemsize: number of bytes of a result.
        store: function that stores a result.
    """

    @kernel(definition)
    def softmax_8_bit(record, tile, worker):
        """Write the softmax of this tile's rows; exponentials are summed in the official order."""
        rows, tiles, length = word(record, ROWS), word(record, TILES), word(record, LENGTH)
        table, flip, half = word(record, TABLE), word(record, FLIP), real(record, HALF)
        values = word(record, SCRATCH) + worker * word(record, SCRATCH_BYTES)
        limit, zero_point = r.ints(word(record, LIMIT)), r.ints(word(record, ZERO_POINT))
        for i in range(rows * tile // tiles, rows * (tile + 1) // tiles):
            source = word(record, SOURCE) + i * length
            target = word(record, TARGET) + itemsize * i * length
            maximum = 0
            for j in range(length):
                maximum = max(maximum, types.int64(load_u8(source + j)) ^ flip)
            total = ZERO
            for j in range(length):
                difference = (types.int64(load_u8(source + j)) ^ flip) - maximum
                value = load_f32(table + 4 * (difference & 255))
                store_f32(values + 4 * j, value)
                total += value
            factor, bias = r.floats(ONE / (total * real(record, SCALE))), r.floats(half)
            for j in range(0, length, r.LANES):
                value = r.load_floats(values + 4 * j, length - j, bias)
                share = r.to_ints(r.add_floats(r.multiply_floats(value, factor), bias))
                share = r.add_ints(r.smaller_ints(share, limit), zero_point)
                store(target + itemsize * j, share, length - j)


softmax_kernel(instructions.SOFTMAX_8_BIT, 1, r.store_low_bytes)
softmax_kernel(instructions.SOFTMAX_8_BIT_TO_INT16, 2, r.store_low_halves)


(
    W_SOURCE, W_TARGET, W_ROWS, W_LENGTH, W_TILES, EXPONENTIALS, RECIPROCALS, LEFT, MULTIPLIER,
    RIGHT,
) = instructions.SOFTMAX_INT16.slots(*instructions.SOFTMAX_INT16.names)  # fmt: skip


(
    L_SOURCE, L_TARGET, L_ROWS, L_LENGTH, L_TILES, L_TABLE, L_FLIP, L_SCALE, L_ZERO_POINT,
) = instructions.LOG_SOFTMAX_8_BIT.slots(*instructions.LOG_SOFTMAX_8_BIT.names)  # fmt: skip

UNITS = np.float32(16)  # of an 8-bit logarithm in 1
LEAST, ROUNDING = np.float32(-255), np.float32(3 << 22)  # the sum with ROUNDING is an integer
LOG_2, SQRT_2, HALVINGS = math.log(2), math.sqrt(2), 128.0  # float32 end at 2**128


@kernel(instructions.LOG_SOFTMAX_8_BIT)
def log_softmax_8_bit(record, tile, worker):
    """Write the logarithms of the softmax of this tile's rows, summed in the official order.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    rows, tiles, length = word(record, L_ROWS), word(record, L_TILES), word(record, L_LENGTH)
    table, flip, scale = word(record, L_TABLE), word(record, L_FLIP), real(record, L_SCALE)
    zero_point = word(record, L_ZERO_POINT)
    for i in range(rows * tile // tiles, rows * (tile + 1) // tiles):
        source, target = word(record, L_SOURCE) + i * length, word(record, L_TARGET) + i * length
        maximum = 0
        for j in range(length):
            maximum = max(maximum, types.int64(load_u8(source + j)) ^ flip)
        total = ZERO
        for j in range(length):
            difference = (types.int64(load_u8(source + j)) ^ flip) - maximum
            total += load_f32(table + 4 * (difference & 255))
        offset = (scale * np.float32(maximum - flip) + np.float32(natural_log(total))) * UNITS
        for j in range(length):
            value = (types.int32(load_u8(source + j)) ^ flip) - flip
            share = np.float32(value) * (scale * UNITS) - offset
            share = (min(max(share, LEAST), ZERO) + ROUNDING) - ROUNDING
            store_i8(target + j, types.int32(share) + zero_point)


@jit
def natural_log(x):
    """Return the natural logarithm of a float32 of 1 or more, in float64."""
    rest, power = np.float64(x), 0.0
    while rest > SQRT_2 and power < HALVINGS:
        rest, power = rest * 0.5, power + 1.0
    ratio = (rest - 1.0) / (rest + 1.0)
    square, series = ratio * ratio, 0.0
    for n in range(23, 0, -2):
        series = series * square + 1.0 / n
    return power * LOG_2 + 2.0 * ratio * series


@kernel(instructions.SOFTMAX_INT16)
def softmax_int16(record, tile, worker):
    """Write the softmax of this tile's rows of int16, in Q0.15.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    rows, tiles, length = word(record, W_ROWS), word(record, W_TILES), word(record, W_LENGTH)
    for i in range(rows * tile // tiles, rows * (tile + 1) // tiles):
        source = word(record, W_SOURCE) + 2 * i * length
        target = word(record, W_TARGET) + 2 * i * length
        maximum = -32768
        for j in range(length):
            maximum = max(maximum, types.int64(load_i16(source + 2 * j)))
        total = 0
        for j in range(length):
            value = exponential(record, types.int64(load_i16(source + 2 * j)) - maximum)
            store_i16(target + 2 * j, value)
            total += value
        inverse, right = reciprocal(record, total)
        for j in range(length):
            product = types.int64(load_i16(target + 2 * j)) * inverse
            share = (product + (1 << (right - 1))) >> right
            store_i16(target + 2 * j, min(max(share, 0), 32767))


@jit
def exponential(record, difference):
    """Return the exponential of a difference from the row's maximum, in Q0.15.

    *record* is the address of the kernel call's operands.
    """
    right = word(record, RIGHT)
    # Int32 arithmetic wraps around, as in C.
    shifted = types.int64(types.int32(difference << word(record, LEFT)))
    high = (shifted * word(record, MULTIPLIER) + (1 << 30)) >> 31
    if right:
        high = (high + ((1 << right) >> 1) - types.int64(high < 0)) >> right
    return interpolated(word(record, EXPONENTIALS), high + 32767)


@jit
def reciprocal(record, total):
    """Return the multiplier and the right shift that divide exponentials by their sum *total*.

    *record* is the address of the kernel call's operands.
    """
    bits = 0
    while total >> bits:
        bits += 1
    shifted = ((total << (31 - bits)) + (1 << 13)) >> 14
    return interpolated(word(record, RECIPROCALS), shifted - (1 << 15) - (1 << 16)), bits - 1


@jit
def interpolated(points, q):
    """Return a function's value at *q*, an int16, interpolated in a table of 513 int64.

    *points* is the address of the table. A *q* out of range is first clamped to int16.
    """
    q = min(max(q, -32768), 32767)
    place = points + 8 * (256 + (q >> 7))
    first = load_i64(place)
    # Int16 arithmetic wraps around, as in C.
    slope = types.int64(types.int16(load_i64(place + 8) - first))
    return first + ((slope * (q & 0x7F) + 64) >> 7)
