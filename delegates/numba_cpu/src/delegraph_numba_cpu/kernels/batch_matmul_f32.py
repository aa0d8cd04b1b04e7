"""Products of few rows of float32 and matrices, for which packing would take too long."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen.intrinsics import F32, I32, call, jit, word
from delegraph_numba_cpu.codegen.registry import kernel
from delegraph_numba_cpu.codegen.vector_ir import (
    LANES,
    Loop,
    first_lanes,
    integer,
    lanes_of,
    load,
    masked_load,
    masked_store,
    merged,
    multiply_add,
    repeated,
    splat,
    store,
    strided,
    vector,
)
from delegraph_numba_cpu.instructions import batch_matmul_f32 as instructions

i64 = types.int64
KIND = vector(F32, LANES)
ZERO = ir.Constant(KIND, [0.0] * LANES)

AT_ONCE = 4
"""Number of vectors of columns whose sums one call computes, each in a separate register."""

TOGETHER = 4 if LANES == 16 else 2
"""Largest number of rows that are multiplied together; as many as fit the registers."""

(
    X, Y, WEIGHTS, X_IMAGE, WEIGHTS_IMAGE, IMAGES, ROWS, DEPTH, COLUMNS, TILES,
) = instructions.DOTS.slots(*instructions.DOTS.names)  # fmt: skip


def _dotter(rows, is_whole):
    """Return an intrinsic that stores dot products of *rows* rows and ``LANES // rows`` columns.

    It is called as ``(x, row_count, weights, depth, count, y, pitch)``, where *x*, *weights* and
    *y* are addresses. *x* has *row_count* rows, *weights* has *count* columns, each of *depth*
    adjacent values. If there are fewer rows or columns than the intrinsic computes, the last one is
    used again. *is_whole* says that there are always enough. Rows of results at *y* are *pitch*
    bytes apart.
    """
    columns = LANES // rows
    places = _strided_places if is_whole else _places_at_most

    @intrinsic
    def dots_of_rows(context, x, row_count, weights, depth, count, y, pitch):
        def generate(lowering, builder, signature, arguments):
            x, row_count, weights, depth, count, y, pitch = arguments
            row_bytes = builder.shl(depth, integer(2))
            left = places(builder, x, row_bytes, rows, row_count)
            right = places(builder, weights, row_bytes, columns, count)
            totals = _totals(builder, _dot_sums(builder, left, right, depth))
            mask = first_lanes(builder, count, columns)
            for i, place in enumerate(places(builder, y, pitch, rows, row_count)(integer(0))):
                own = lanes_of(builder, totals, totals, range(i * columns, (i + 1) * columns))
                if is_whole:
                    store(builder, own, place)
                else:
                    masked_store(builder, own, place, mask)
            return lowering.get_dummy_value()

        return types.void(*[i64] * 7), generate

    return dots_of_rows


def _dot_sums(builder, left, right, depth):
    """Return a vector for each row and column, row by row; its lanes add up to their dot product.

    *left* and *right* are functions of an offset in bytes. They return the address with this offset
    in each row, and in each column. Rows and columns have *depth* values.
    """

    def added(index, sums, read=lambda address: load(builder, address, KIND)):
        at, found = builder.shl(index, integer(2)), list(sums)
        values, columns = [read(place) for place in left(at)], right(at)
        for j, place in enumerate(columns):
            weight = read(place)
            for i, value in enumerate(values):
                total = i * len(columns) + j
                found[total] = multiply_add(builder, value, weight, found[total])
        return found

    index, sums = repeated(builder, integer(0), depth, LANES, [ZERO] * LANES, added)
    rest, before = builder.sub(depth, index), builder.block
    with builder.if_then(builder.icmp_signed(">", rest, integer(0))):
        mask = first_lanes(builder, rest, LANES)
        longer = added(index, sums, lambda address: masked_load(builder, address, mask, KIND))
        inside = builder.block
    pairs = zip(sums, longer, strict=True)
    return [merged(builder, (short, before), (long, inside)) for short, long in pairs]


def _strided_places(builder, first, step, most, count):
    """Return a function of an offset *at* that returns *most* addresses.

    They begin at ``first + at``, and are *step* bytes apart. *count* is not used; callers know that
    it equals *most*.
    """
    return lambda at: strided(builder, builder.add(first, at), step, most)


def _places_at_most(builder, first, step, most, count):
    """Return a function like that of :func:`_strided_places`, for *count* up to *most*.

    Its result has *most* addresses, too: after *count* of them, the last one is repeated.
    """
    found = _addresses(builder, first, step, most, count)
    return lambda at: [builder.add(address, at) for address in found]


def _addresses(builder, first, step, most, count):
    """Return *most* addresses from *first* on, *step* bytes apart.

    Only *count* of them differ: the last of these is repeated.
    """
    last, found = builder.sub(count, integer(1)), []
    for i in range(most):
        number = call(builder, "llvm.smin.i64", last.type, [last, integer(i)])
        found.append(builder.add(first, builder.mul(number, step)))
    return found


def _totals(builder, vectors):
    """Return a vector whose lane *i* is the sum of the lanes of ``vectors[i]``."""
    while len(vectors) > 1:
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [
            builder.fadd(*(builder.shuffle_vector(a, b, lanes) for lanes in _EVEN_AND_ODD))
            for a, b in pairs
        ]
    return vectors[0]


_EVEN_AND_ODD = [
    ir.Constant(vector(I32, LANES), list(range(first, 2 * LANES, 2))) for first in (0, 1)
]


def _adder(rows, vectors, masked):
    """Return an intrinsic that computes *vectors* vectors of results for each of *rows* rows.

    It is called as ``(x, row_count, weights, weights_row, depth, count, y, pitch)``. It stores
    ``sum(x[k] * weights[k])`` for each row of *x*. There are *depth* rows of *weights*,
    *weights_row* bytes apart. If *masked*, *vectors* is 1, and only *count* lanes are read and
    written. Other arguments are those of :func:`_dotter`.
    """

    @intrinsic
    def add_rows(context, x, row_count, weights, weights_row, depth, count, y, pitch):
        def generate(lowering, builder, signature, arguments):
            x, row_count, weights, weights_row, depth, count, y, pitch = arguments
            mask = first_lanes(builder, count, LANES)
            lefts = _addresses(builder, x, builder.shl(depth, integer(2)), rows, row_count)
            loop = Loop(builder, depth)
            weights = loop.carried(weights)
            sums = [[loop.carried(ZERO) for _ in range(vectors)] for _ in range(rows)]
            at = builder.shl(loop.index, integer(2))
            columns = []
            for n in range(vectors):
                place = builder.add(weights, integer(4 * LANES * n))
                columns.append(
                    masked_load(builder, place, mask, KIND)
                    if masked
                    else load(builder, place, KIND)
                )
            found = []
            for left, totals in zip(lefts, sums, strict=True):
                value = splat(builder, load(builder, builder.add(left, at), F32), LANES)
                found += [
                    multiply_add(builder, value, column, total)
                    for column, total in zip(columns, totals, strict=True)
                ]
            loop.close(builder.add(weights, weights_row), *found)
            places = _addresses(builder, y, pitch, rows, row_count)
            for number, total in enumerate(found):
                row, n = divmod(number, vectors)
                place = builder.add(places[row], integer(4 * LANES * n))
                if masked:
                    masked_store(builder, total, place, mask)
                else:
                    store(builder, total, place)
            return lowering.get_dummy_value()

        return types.void(*[i64] * 8), generate

    return add_rows


def products_of_rows(rows):
    """Return the functions ``dot`` and ``add``, which multiply up to *rows* rows by a matrix.

    For ``dot``, the values of a column of the matrix are adjacent; for ``add``, those of a row.

    Args:
        rows: number of rows that are multiplied together.
    """
    whole_dots, dots, columns = _dotter(rows, True), _dotter(rows, False), LANES // rows
    add_several, add_one, add_part = (
        _adder(rows, vectors, masked)
        for vectors, masked in ((AT_ONCE, False), (1, False), (1, True))
    )

    @jit
    def dot(x, row_count, weights, depth, count, y, pitch):
        """Store the products of *row_count* rows of *x* and *count* columns of *weights* at *y*.

        For all arguments see :func:`_dotter`.
        """
        for start in range(0, count, columns):
            place, target, left = weights + 4 * start * depth, y + 4 * start, count - start
            if row_count == rows and left >= columns:
                whole_dots(x, rows, place, depth, columns, target, pitch)
            else:
                dots(x, row_count, place, depth, min(columns, left), target, pitch)

    @jit
    def add(x, row_count, weights, weights_row, depth, count, y, pitch):
        """Store *count* columns of the product of *row_count* rows of *x* and *weights* at *y*.

        The columns fill at most ``AT_ONCE`` vectors. For all arguments see :func:`_adder`.
        """
        if count == AT_ONCE * LANES:
            add_several(x, row_count, weights, weights_row, depth, count, y, pitch)
            return
        for start in range(0, count, LANES):
            place, target, left = weights + 4 * start, y + 4 * start, count - start
            if left >= LANES:
                add_one(x, row_count, place, weights_row, depth, left, target, pitch)
            else:
                add_part(x, row_count, place, weights_row, depth, left, target, pitch)

    return dot, add


(dot_single, add_single), (dot_pair, add_pair) = products_of_rows(1), products_of_rows(2)
dot_most, add_most = products_of_rows(TOGETHER) if TOGETHER > 2 else (dot_pair, add_pair)


@kernel(instructions.DOTS)
def dots(record, tile, worker):
    """Compute this tile's columns of the products; matrices are ``[columns, depth]``.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    rows, depth, columns = word(record, ROWS), word(record, DEPTH), word(record, COLUMNS)
    groups = (columns + LANES - 1) // LANES
    units, tiles = word(record, IMAGES) * groups, word(record, TILES)
    for unit in range(units * tile // tiles, units * (tile + 1) // tiles):
        image, column = unit // groups, unit % groups * LANES
        x = word(record, X) + image * word(record, X_IMAGE)
        weights = word(record, WEIGHTS) + image * word(record, WEIGHTS_IMAGE) + 4 * column * depth
        y = word(record, Y) + 4 * (image * rows * columns + column)
        count = min(columns - column, LANES)
        for row in range(0, rows, TOGETHER):
            left, source, target = rows - row, x + 4 * row * depth, y + 4 * row * columns
            if left > 2:
                dot_most(source, min(left, TOGETHER), weights, depth, count, target, 4 * columns)
            elif left == 2:
                dot_pair(source, left, weights, depth, count, target, 4 * columns)
            else:
                dot_single(source, left, weights, depth, count, target, 4 * columns)


@kernel(instructions.SUMS)
def sums(record, tile, worker):
    """Compute this tile's columns of the products; matrices are ``[depth, columns]``.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    rows, depth, columns = word(record, ROWS), word(record, DEPTH), word(record, COLUMNS)
    width, pitch = AT_ONCE * LANES, 4 * columns
    groups = (columns + width - 1) // width
    units, tiles = word(record, IMAGES) * groups, word(record, TILES)
    for unit in range(units * tile // tiles, units * (tile + 1) // tiles):
        image, column = unit // groups, unit % groups * width
        x = word(record, X) + image * word(record, X_IMAGE)
        weights = word(record, WEIGHTS) + image * word(record, WEIGHTS_IMAGE) + 4 * column
        y = word(record, Y) + image * rows * pitch + 4 * column
        count = min(columns - column, width)
        for row in range(0, rows, TOGETHER):
            left, source, target = rows - row, x + 4 * row * depth, y + row * pitch
            if left > 2:
                taken = min(left, TOGETHER)
                add_most(source, taken, weights, pitch, depth, count, target, pitch)
            elif left == 2:
                add_pair(source, left, weights, pitch, depth, count, target, pitch)
            else:
                add_single(source, left, weights, pitch, depth, count, target, pitch)
