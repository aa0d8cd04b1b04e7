"""Reductions of the middle axis of ``[outer, length, inner]``, and conversions of sums of bytes.

If ``inner`` is 1, vectors hold elements along the axis, and their lanes are combined at its end.
Otherwise each lane reduces a separate element of ``inner``.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen import registers as r
from delegraph_numba_cpu.codegen.intrinsics import (
    I32,
    I64,
    jit,
    load_f32,
    load_i32,
    real,
    store_f32,
    store_i32,
    store_u8,
    word,
)
from delegraph_numba_cpu.codegen.lanes import Lanes
from delegraph_numba_cpu.codegen.registry import kernel
from delegraph_numba_cpu.codegen.vector_ir import first_lanes, integer, splat
from delegraph_numba_cpu.instructions import reductions as instructions
from delegraph_numba_cpu.kernels.fixed_point import INT32_MAX, INT32_MIN

SOURCE, TARGET, OUTER, LENGTH, INNER, TILES, DIVISOR = instructions.SUM_F32.slots(
    *instructions.SUM_F32.names
)
(SIGN,) = instructions.MAX_F32.slots("sign")
MASK, FLIP = instructions.SUM_BYTES.slots("mask", "flip")
STRIP = 4 * r.LANES
"""Number of elements of ``inner`` in a strip; tiles consist of whole strips."""


@jit
def never(x, y):
    """Return 0, since the result of the reduction does not depend on the order of *x* and *y*."""
    return 0


@jit
def not_in_order(record, source, length):
    """Return 0; it is not called, because reductions with this function may run in any order.

    *record* is the address of the kernel call's operands.
    """
    return 0


@jit
def always(x, y):
    """Return 1: the factors of a product must be multiplied in TFLite's order.

    In another order, an intermediate product may overflow, so that the result is infinite.
    """
    return 1


@jit
def product_in_order(record, source, length):
    """Return the product of a row's floats, multiplied one after another as TFLite does.

    *record* is the address of the kernel call's operands.
    """
    product = load_f32(source)
    for i in range(1, length):
        product *= load_f32(source + 4 * i)
    return product


@jit
def largest_in_order(record, source, length):
    """Return the largest product of a float and ``sign`` after a row's last NaN.

    It is NaN if the row ends with one. The row has *length* floats at *source*. ``sign`` is a word
    of the kernel call, whose operands are at *record*.
    """
    largest = real(record, SIGN) * load_f32(source)
    for i in range(1, length):
        value = real(record, SIGN) * load_f32(source + 4 * i)
        largest = largest if largest > value else value
    return largest


def reduction(
    instruction, start, sizes, registers, combine, fold, begin, end,
    matters=never, in_order=not_in_order,
):  # fmt: skip
    """Define the kernel of a reduction instruction.

    Args:
        instruction: name of the kernel, and of the operands that it reads.
        start: result for no elements.
        sizes: number of bytes of an element of the source, and of the target.
        registers: functions that make, load, store and cut a vector, and that get and store its
            first lane.
        combine: function that reduces two vectors to one.
        fold: function that reduces a vector to a number.
        begin: function ``(record, vector) -> vector`` that is applied to loaded vectors.
        end: function like *begin* for vectors that are stored.
        matters: function ``(vector, vector) -> integer``; not 0 if the result depends on the order
            of these elements, which vectors change.
        in_order: function ``(record, source, length) -> number`` that reduces a row in the right
            order.
    """
    size, target_size = sizes
    fill, load, store, cut, first, store_one = registers

    @jit
    def along(record, source, length):
        """Return the reduction of *length* consecutive elements at the address *source*."""
        none = fill(start)
        a = b = none
        ordered = 0
        whole = length - length % (2 * r.LANES)
        for i in range(0, whole, 2 * r.LANES):
            address = source + i * size
            x = begin(record, load(address, r.LANES, none))
            y = begin(record, load(address + r.LANES * size, r.LANES, none))
            a, b, ordered = combine(a, x), combine(b, y), ordered | matters(x, y)
        for i in range(whole, length, r.LANES):
            x = begin(record, load(source + i * size, length - i, none))
            x = cut(x, length - i, none)
            a, ordered = combine(a, x), ordered | matters(x, x)
        if ordered:
            return in_order(record, source, length)
        return fold(combine(a, b))

    @jit
    def across(record, source, length, step, target, count):
        """Store *count* reductions at *target*, each of *length* elements, *step* bytes apart.

        The first elements of the reductions are adjacent, from the address *source* on.
        """
        none = fill(start)
        whole = count if count == STRIP else 0
        if whole:
            a = b = c = d = none
            address = source
            for _ in range(length):
                a = combine(a, begin(record, load(address, r.LANES, none)))
                b = combine(b, begin(record, load(address + r.LANES * size, r.LANES, none)))
                c = combine(c, begin(record, load(address + 2 * r.LANES * size, r.LANES, none)))
                d = combine(d, begin(record, load(address + 3 * r.LANES * size, r.LANES, none)))
                address += step
            store(target, end(record, a), r.LANES)
            store(target + r.LANES * target_size, end(record, b), r.LANES)
            store(target + 2 * r.LANES * target_size, end(record, c), r.LANES)
            store(target + 3 * r.LANES * target_size, end(record, d), r.LANES)
        for i in range(whole, count, r.LANES):
            value = none
            address = source + i * size
            for _ in range(length):
                value = combine(value, begin(record, load(address, count - i, none)))
                address += step
            store(target + i * target_size, end(record, value), count - i)

    def run(record, tile, worker):
        outer, length, inner = word(record, OUTER), word(record, LENGTH), word(record, INNER)
        strips = (inner + STRIP - 1) // STRIP
        tasks, tiles = outer * strips, word(record, TILES)
        for task in range(tasks * tile // tiles, tasks * (tile + 1) // tiles):
            o, i = task // strips, task % strips * STRIP
            source = word(record, SOURCE) + (o * length * inner + i) * size
            target = word(record, TARGET) + (o * inner + i) * target_size
            if inner == 1:
                value = end(record, fill(along(record, source, length)))
                store_one(target, first(value))
            else:
                across(record, source, length, inner * size, target, min(STRIP, inner - i))

    kernel(instruction)(run)


@jit
def as_is(record, vector):
    """Return *vector* unchanged, for reductions that convert no elements.

    *record* is the address of the kernel call's operands.
    """
    return vector


@jit
def over_divisor(record, vector):
    """Return *vector* divided by the instruction's word ``divisor``.

    *record* is the address of the kernel call's operands.
    """
    return r.divide_floats(vector, r.floats(real(record, DIVISOR)))


@jit
def times_sign(record, vector):
    """Return *vector* times the instruction's word ``sign``.

    *record* is the address of the kernel call's operands.
    """
    return r.multiply_floats(vector, r.floats(real(record, SIGN)))


@jit
def masked_and_flipped(record, vector):
    """Return *vector* of sign-extended bytes, masked by ``mask`` and xored with ``flip``.

    *record* is the address of the kernel call's operands.
    """
    return r.flip_ints(r.mask_ints(vector, r.ints(word(record, MASK))), r.ints(word(record, FLIP)))


@jit
def flipped(record, vector):
    """Return *vector* xored with the instruction's word ``flip``.

    *record* is the address of the kernel call's operands.
    """
    return r.flip_ints(vector, r.ints(word(record, FLIP)))


FLOATS = (r.floats, r.load_floats, r.store_floats, r.cut_floats, r.first_float, store_f32)
SUMS = (r.ints, r.widen_signed, r.store_ints, r.cut_ints, r.first_int, store_i32)
BYTES = (r.ints, r.widen_signed, r.store_low_bytes, r.cut_ints, r.first_int, store_u8)
plus, times, larger = (r.folder(r.FLOATS, function) for function in (r.plus, r.times, r.larger))
zero, one, least = np.float32(0), np.float32(1), np.float32("-inf")

reduction(instructions.SUM_F32, zero, (4, 4), FLOATS, r.add_floats, plus, as_is, over_divisor)

reduction(
    instructions.PRODUCT_F32, one, (4, 4), FLOATS, r.multiply_floats, times, as_is, as_is,
    always, product_in_order,
)  # fmt: skip

reduction(
    instructions.MAX_F32, least, (4, 4), FLOATS, r.larger_floats, larger, times_sign, times_sign,
    r.nan_bits, largest_in_order,
)  # fmt: skip

plus, larger = r.folder(r.INTS, r.plus), r.folder(r.INTS, r.larger)

reduction(instructions.SUM_BYTES, 0, (1, 4), SUMS, r.add_ints, plus, masked_and_flipped, as_is)

reduction(
    instructions.MAX_BYTES, -256, (1, 1), BYTES, r.larger_ints, larger, masked_and_flipped, flipped
)

(
    S_SOURCE, S_TARGET, COUNT, LOW, HIGH, SUBTRAHEND, MULTIPLIER, SHIFT, PERIOD, UP, BIAS,
) = instructions.SCALE.slots(*instructions.SCALE.names)  # fmt: skip


@kernel(instructions.SCALE)
def scale(record, tile, worker):
    """Convert sums of 8-bit values to 8-bit results, in fixed-point arithmetic.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    period, up = word(record, PERIOD), word(record, UP)
    for start in range(0, word(record, COUNT), period):
        for i in range(0, period, r.LANES):
            sums = r.load_ints(word(record, S_SOURCE) + 4 * (start + i), period - i, r.ints(0))
            value = scaled_sums(
                r.add_ints(sums, r.ints(-word(record, SUBTRAHEND))),
                word(record, MULTIPLIER),
                max(word(record, SHIFT), 0),
                max(-word(record, SHIFT), 0),
                up - i,
            )
            value = r.add_ints(value, r.ints(word(record, BIAS)))
            value = r.larger_ints(value, r.ints(word(record, LOW)))
            value = r.smaller_ints(value, r.ints(word(record, HIGH)))
            r.store_low_bytes(word(record, S_TARGET) + start + i, value, period - i)


@intrinsic
def scaled_sums(context, x, multiplier, left, right, up):
    """Return :func:`fixed_point.scaled` of each int32 of *x*, with the shift ``left - right``.

    The first *up* lanes round halves up, the others away from zero. At most one of the shifts
    *left* and *right* is not 0.
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


REAL_ZERO, REAL_SCALE, REAL_BIAS = instructions.SCALE_REAL.slots("zero", "scale", "bias")


@kernel(instructions.SCALE_REAL)
def scale_real(record, tile, worker):
    """Convert sums of 8-bit values to 8-bit results, in float32 arithmetic.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    for i in range(word(record, COUNT)):
        product = real(record, REAL_SCALE) * np.float32(load_i32(word(record, S_SOURCE) + 4 * i))
        value = product + real(record, REAL_BIAS)
        whole = np.trunc(value)
        rest = np.abs(value - whole)
        number = np.int64(whole)
        if rest >= np.float32(0.5):
            number += 1 if value > 0 else -1
        number += word(record, REAL_ZERO)
        store_u8(
            word(record, S_TARGET) + i, min(max(number, word(record, LOW)), word(record, HIGH))
        )


I_SOURCE, I_TARGET, I_OUTER, I_LENGTH, I_INNER, I_TILES, I_OPERATION = instructions.INT32.slots(
    *instructions.INT32.names
)


@kernel(instructions.INT32)
def int32(record, tile, worker):
    """Compute this tile's int32 results, one after another.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    length, inner, operation = (
        word(record, I_LENGTH),
        word(record, I_INNER),
        word(record, I_OPERATION),
    )
    outputs, tiles = word(record, I_OUTER) * inner, word(record, I_TILES)
    for i in range(outputs * tile // tiles, outputs * (tile + 1) // tiles):
        source = word(record, I_SOURCE) + 4 * (i // inner * length * inner + i % inner)
        value = reduced_int32(source, length, 4 * inner, operation)
        store_i32(word(record, I_TARGET) + 4 * i, value)


@jit
def reduced_int32(source, length, step, operation):
    """Return the reduction of *length* int32, *step* bytes apart, from the address *source* on.

    *operation* is its number, such as ``instructions.MIN``.
    """
    total, product, largest, smallest = 0, 1, INT32_MIN, INT32_MAX
    for k in range(length):
        value = load_i32(source + step * k)
        total += value
        product *= value
        largest = max(largest, value)
        smallest = min(smallest, value)
    if operation == instructions.MEAN:
        mean = abs(total) // max(length, 1)
        return mean if total >= 0 else -mean
    if operation == instructions.MAX:
        return largest
    if operation == instructions.MIN:
        return smallest
    return product if operation == instructions.PRODUCT else total
