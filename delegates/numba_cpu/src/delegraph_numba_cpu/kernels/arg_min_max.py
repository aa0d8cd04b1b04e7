"""ARG_MAX and ARG_MIN: the position of the first largest or smallest element; NaN is ignored."""

from __future__ import annotations

import numpy as np

from delegraph_numba_cpu.codegen import registers as r
from delegraph_numba_cpu.codegen.intrinsics import (
    I8,
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
    """Return a function that finds the first largest or smallest element, one element at a time.

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


LOWEST = np.float32("-inf")
largest_float = r.folder(r.FLOATS, r.larger)


load_floats = r.whole_loader(r.FLOATS)


@jit
def row_f32(source, length, smallest):
    """Return the position of the first largest float32 of a row; of the smallest if *smallest*.

    The row has *length* values at the address *source*.
    """
    sign = r.floats(np.float32(-1.0) if smallest else np.float32(1.0))
    if length < r.LANES:
        none = r.floats(LOWEST)
        piece = r.multiply_floats(r.load_floats(source, length, none), sign)
        piece = r.larger_floats(r.cut_floats(piece, length, none), none)
        lane = r.first_equal(piece, r.floats(largest_float(piece)))
        return lane if lane < length else 0
    last = length - r.LANES  # the last piece may overlap the one before
    best = r.floats(LOWEST)
    for i in range(0, length, r.LANES):
        piece = r.multiply_floats(load_floats(source + 4 * min(i, last)), sign)
        best = r.larger_floats(piece, best)
    best = r.floats(largest_float(best))
    for i in range(0, length, r.LANES):
        first = min(i, last)
        piece = r.multiply_floats(load_floats(source + 4 * first), sign)
        lane = r.first_equal(piece, best)
        if lane < r.LANES:
            return first + lane
    return 0


POSITION_BITS = 22
LONGEST = 1 << POSITION_BITS
"""Largest number of bytes of a row whose positions fit into the low bits of a lane."""

lanes_of_bytes = r.binary(r.INTS, lambda value, behind: (value << POSITION_BITS) + behind)
largest_lane = r.folder(r.INTS, r.larger)


def byte_row_searcher(load, load_some):
    """Return a function that finds the first largest or smallest byte of a row, by vectors.

    A lane holds a byte in its high bits, and in its low bits a number that falls with the position.
    So the largest lane belongs to the first of the largest bytes.

    Args:
        load: function that loads a vector of bytes at an address.
        load_some: function that loads the first elements of a vector; see ``registers.loader``.

    Returns:
        ``find(source, length, smallest) -> position``, for at most LONGEST bytes.
    """

    @jit
    def lanes_from(source, first, flipped):
        value = r.flip_ints(load(source + first), flipped)
        return lanes_of_bytes(value, r.add_ints(r.ints(LONGEST - 1 - first), r.lanes_down()))

    @jit
    def find(source, length, smallest):
        flipped = r.ints(-1 if smallest else 0)
        if length < r.LANES:
            none = r.ints(-256)
            value = r.cut_ints(r.flip_ints(load_some(source, length, none), flipped), length, none)
            best = lanes_of_bytes(value, r.add_ints(r.ints(LONGEST - 1), r.lanes_down()))
            return LONGEST - 1 - (largest_lane(best) & (LONGEST - 1))
        last = length - r.LANES  # the last piece may overlap the one before
        best = lanes_from(source, last, flipped)
        for i in range(0, last, r.LANES):
            best = r.larger_ints(lanes_from(source, i, flipped), best)
        return LONGEST - 1 - (largest_lane(best) & (LONGEST - 1))

    return find


row_s8, row_u8 = (
    byte_row_searcher(r.whole_loader(r.INTS, I8, is_signed), load_some)
    for is_signed, load_some in ((True, r.widen_signed), (False, r.widen_unsigned))
)


@jit
def found_in_row(source, first, length, kind, smallest):
    """Return the position of the first largest or smallest element of a row, or -1.

    It is -1 for int32, and for rows of more than ``LONGEST`` bytes: :func:`found` searches these.

    Args:
        source: address of the tensor.
        first: number of elements before the row.
        length: number of elements of the row.
        kind: number of the element type.
        smallest: whether the smallest element is found, not the largest.
    """
    if kind == INT32:
        return -1
    if kind == FLOAT32:
        return row_f32(source + 4 * first, length, smallest)
    if length > LONGEST:
        return -1
    row = source + first
    return row_s8(row, length, smallest) if kind == INT8 else row_u8(row, length, smallest)


@jit
def found(source, first, length, step, kind, smallest):
    """Return the position of the first largest or smallest of *length* elements, *step* apart.

    Other arguments are those of :func:`found_in_row`; the search is element by element.
    """
    if kind == FLOAT32:
        return find_f32(source + 4 * first, length, step, smallest)
    if kind == INT8:
        return find_s8(source + first, length, step, smallest)
    if kind == UINT8:
        return find_u8(source + first, length, step, smallest)
    return find_i32(source + 4 * first, length, step, smallest)


@kernel(instructions.ARG)
def arg(record, tile, worker):
    """Store the positions of largest or smallest elements for this tile's part of the outputs.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    length, inner, kind = word(record, LENGTH), word(record, INNER), word(record, KIND)
    outputs, tiles = word(record, OUTER) * inner, word(record, TILES)
    smallest, wide = word(record, SMALLEST) != 0, word(record, WIDE)
    source, target = word(record, SOURCE), word(record, TARGET)
    for i in range(outputs * tile // tiles, outputs * (tile + 1) // tiles):
        position = -1
        if inner == 1:
            first = i * length
            position = found_in_row(source, first, length, kind, smallest)
        else:
            first = i // inner * length * inner + i % inner
        if position < 0:
            position = found(source, first, length, inner, kind, smallest)
        if wide:
            store_i64(target + 8 * i, position)
        else:
            store_i32(target + 4 * i, position)
