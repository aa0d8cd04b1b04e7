"""ARG_MAX and ARG_MIN: the position of the first largest or smallest element; NaN is ignored."""

from __future__ import annotations

import numpy as np

from delegraph_numba_cpu.codegen import registers as r
from delegraph_numba_cpu.codegen.intrinsics import (
    jit,
    load_f32,
    load_i8,
    load_i32,
    load_u8,
    store_i32,
    store_i64,
    word,
)
from delegraph_numba_cpu.codegen.registry import kernel
from delegraph_numba_cpu.instructions import arg_min_max as instructions

FLOAT32, INT8, UINT8, INT32 = instructions.ARG_KINDS.values()
SOURCE, TARGET, OUTER, LENGTH, INNER, KIND, SMALLEST, WIDE, TILES = instructions.ARG.slots(
    *instructions.ARG.names
)


def searcher(load, size):
    """Return a function that finds a largest or smallest element, by looking at one after another.

    Args:
        load: function that loads the element at an address.
        size: number of bytes of an element.

    Returns:
        ``find(source, length, step, smallest) -> position``, for elements that are *step* elements
        apart.
    """

    @jit
    def find(source, length, step, smallest):
        first = 0
        best = load(source)
        while best != best and first + 1 < length:  # ``best`` is NaN
            first += 1
            best = load(source + size * step * first)
        position = first if best == best else 0
        for k in range(first + 1, length):
            value = load(source + size * step * k)
            if value < best if smallest else value > best:
                best, position = value, k
        return position

    return find


find_f32, find_s8 = searcher(load_f32, 4), searcher(load_i8, 1)
find_u8, find_i32 = searcher(load_u8, 1), searcher(load_i32, 4)


def row_searcher(load, size, fill, start, turned, larger, fold, cut):
    """Return a function that finds a row's first largest or smallest element, by vectors.

    Args:
        load: function that loads a vector of elements at an address.
        size: number of bytes of an element.
        fill: function that makes a vector of copies of a number.
        start: lower bound of all elements and of all turned elements.
        turned: function ``(vector, is_turned)`` that changes elements so that the smallest becomes
            the largest, if *is_turned*.
        larger: function that returns the larger elements of two vectors; the second vector's where
            one is NaN.
        fold: function that returns the largest element of a vector.
        cut: function that keeps the first lanes of a vector.

    Returns:
        ``find(source, length, smallest) -> position``.
    """

    @jit
    def piece(source, rest, smallest, none):
        return cut(turned(load(source, rest, none), smallest), rest, none)

    @jit
    def find(source, length, smallest):
        none = fill(start)
        best = none
        for i in range(0, length, r.LANES):
            best = larger(piece(source + i * size, length - i, smallest, none), best)
        best = fill(fold(best))
        for i in range(0, length, r.LANES):
            lane = r.first_equal(piece(source + i * size, length - i, smallest, none), best)
            if lane < min(r.LANES, length - i):  # other lanes are not elements
                return i + lane
        return 0

    return find


@jit
def turned_floats(vector, is_turned):
    """Return *vector*, negated if *is_turned*, so that its smallest float becomes its largest."""
    return r.multiply_floats(vector, r.floats(np.float32(-1.0))) if is_turned else vector


@jit
def turned_ints(vector, is_turned):
    """Return *vector*, inverted bit by bit if *is_turned*, so that its smallest becomes largest."""
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
    """Return the position of the first largest or smallest element of a row.

    Args:
        source: address of the row.
        length: number of elements.
        kind: number of the element type; any but int32.
        smallest: whether the smallest element is found, not the largest.
    """
    if kind == FLOAT32:
        return row_f32(source, length, smallest)
    return row_s8(source, length, smallest) if kind == INT8 else row_u8(source, length, smallest)


@kernel(instructions.ARG)
def arg(record, tile, worker):
    """Store the positions of the largest or smallest elements for this tile's outputs.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    length, inner, kind = word(record, LENGTH), word(record, INNER), word(record, KIND)
    outputs, tiles = word(record, OUTER) * inner, word(record, TILES)
    smallest, source = word(record, SMALLEST), word(record, SOURCE)
    shortest = 4 * r.LANES if kind == FLOAT32 else 0  # shorter rows are faster without vectors
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
        if word(record, WIDE):
            store_i64(word(record, TARGET) + 8 * i, position)
        else:
            store_i32(word(record, TARGET) + 4 * i, position)
