"""Reductions of the middle axis of ``[outer, length, inner]``.

Where ``inner`` is 1, vectors go along the axis, and are folded at its end; else each lane has an
element of ``inner`` to itself.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np

from delegraph_numba_cpu.blocks import reducing as blocks
from delegraph_numba_cpu.kernels import registers as r
from delegraph_numba_cpu.kernels.machine import jit, real, store_f32, store_i32, store_u8, word
from delegraph_numba_cpu.kernels.registry import kernel

SOURCE, TARGET, OUTER, LENGTH, INNER, TILES, FACTOR = blocks.SUM_F32.slots(*blocks.SUM_F32.names)

STRIP = 4 * r.LANES
"""Elements of ``inner`` that a tile has at least: a cache line or four."""


def reduction(block, start, sizes, fill, load, combine, fold, finish, finish_one, store, store_one):
    """Add the kernel of a block.

    Args:
        block: the block.
        start: what nothing reduces to.
        sizes: bytes of an element of source and target.
        fill: makes a vector of copies of a number.
        load: loads a vector.
        combine: reduces two vectors to one.
        fold: reduces a vector to a number.
        finish: ``(block, vector) -> vector``, what is stored.
        finish_one: the same for a number.
        store: stores a vector.
        store_one: stores a number.
    """
    size, target_size = sizes

    @jit
    def along(source, length):
        """Reduce elements that lie behind one another."""
        none = fill(start)
        first = second = none
        whole = length - length % (2 * r.LANES)
        for i in range(0, whole, 2 * r.LANES):
            first = combine(first, load(source + i * size, r.LANES, none))
            second = combine(second, load(source + (i + r.LANES) * size, r.LANES, none))
        for i in range(whole, length, r.LANES):
            first = combine(first, load(source + i * size, length - i, none))
        return combine(first, second)

    @jit
    def across(block, source, length, step, target, count):
        """Reduce *count* rows that lie *step* bytes apart from element to element."""
        none = fill(start)
        c = 0
        while c + 4 * r.LANES <= count:
            a = b = d = e = none
            address = source + c * size
            for _ in range(length):
                a = combine(a, load(address, r.LANES, none))
                b = combine(b, load(address + r.LANES * size, r.LANES, none))
                d = combine(d, load(address + 2 * r.LANES * size, r.LANES, none))
                e = combine(e, load(address + 3 * r.LANES * size, r.LANES, none))
                address += step
            place = target + c * target_size
            store(place, finish(block, a), r.LANES)
            store(place + r.LANES * target_size, finish(block, b), r.LANES)
            store(place + 2 * r.LANES * target_size, finish(block, d), r.LANES)
            store(place + 3 * r.LANES * target_size, finish(block, e), r.LANES)
            c += 4 * r.LANES
        while c < count:
            a = none
            address = source + c * size
            for _ in range(length):
                a = combine(a, load(address, count - c, none))
                address += step
            store(target + c * target_size, finish(block, a), count - c)
            c += r.LANES

    def run(block, tile, worker):
        outer, length, inner = word(block, OUTER), word(block, LENGTH), word(block, INNER)
        source, target = word(block, SOURCE), word(block, TARGET)
        strips = (inner + STRIP - 1) // STRIP
        tasks, tiles = outer * strips, word(block, TILES)
        for task in range(tasks * tile // tiles, tasks * (tile + 1) // tiles):
            o, c = task // strips, task % strips * STRIP
            begin = source + (o * length * inner + c) * size
            place = target + (o * inner + c) * target_size
            if inner == 1:
                store_one(place, finish_one(block, fold(along(begin, length))))
            else:
                across(block, begin, length, inner * size, place, min(STRIP, inner - c))

    kernel(block)(run)


@jit
def as_is(block, value):
    """Return the value."""
    return value


@jit
def times_factor(block, vector):
    """Return the vector times the block's factor."""
    return r.multiply_floats(vector, r.floats(real(block, FACTOR)))


@jit
def one_times_factor(block, value):
    """Return the value times the block's factor."""
    return value * real(block, FACTOR)


def float_reduction(block, start, combine, function):
    """Add the kernel of a reduction of float32."""
    fold = r.folder(r.FLOATS, function)
    reduction(
        block, np.float32(start), (4, 4), r.floats, r.load_floats, combine, fold, times_factor,
        one_times_factor, r.store_floats, store_f32,
    )  # fmt: skip


def int_reduction(block, start, combine, function, sizes=(4, 4), load=r.load_ints):
    """Add the kernel of a reduction in int32."""
    fold = r.folder(r.INTS, function)
    store, store_one = (r.store_ints, store_i32) if sizes[1] == 4 else (r.store_low_bytes, store_u8)
    reduction(block, start, sizes, r.ints, load, combine, fold, as_is, as_is, store, store_one)


float_reduction(blocks.SUM_F32, 0.0, r.add_floats, r.plus)
float_reduction(blocks.PRODUCT_F32, 1.0, r.multiply_floats, r.times)
float_reduction(blocks.MAX_F32, float("-inf"), r.larger_floats, r.larger)
float_reduction(blocks.MIN_F32, float("inf"), r.smaller_floats, r.smaller)
int_reduction(blocks.SUM_I32, 0, r.add_ints, r.plus)
int_reduction(blocks.PRODUCT_I32, 1, r.multiply_ints, r.times)
int_reduction(blocks.MAX_I32, -(2**31), r.larger_ints, r.larger)
int_reduction(blocks.MIN_I32, 2**31 - 1, r.smaller_ints, r.smaller)
for block, load in ((blocks.SUM_S8, r.widen_signed), (blocks.SUM_U8, r.widen_unsigned)):
    int_reduction(block, 0, r.add_ints, r.plus, (1, 4), load)
for block, load in ((blocks.MAX_S8, r.widen_signed), (blocks.MAX_U8, r.widen_unsigned)):
    int_reduction(block, -128, r.larger_ints, r.larger, (1, 1), load)
for block, load in ((blocks.MIN_S8, r.widen_signed), (blocks.MIN_U8, r.widen_unsigned)):
    int_reduction(block, 255, r.smaller_ints, r.smaller, (1, 1), load)
