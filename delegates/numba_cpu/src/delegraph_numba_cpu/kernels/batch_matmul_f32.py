"""Products of rows of float32 and matrices that are used once, so that packing does not pay."""

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
    load,
    masked_load,
    masked_store,
    multiply_add,
    repeated,
    splat,
    store,
    vector,
)
from delegraph_numba_cpu.instructions import batch_matmul_f32 as instructions

i64 = types.int64
KIND = vector(F32, LANES)
ZERO = ir.Constant(KIND, [0.0] * LANES)

AT_ONCE = 4
"""Number of vectors of columns that one call sums together, each in a register of its own."""

(
    X, Y, WEIGHTS, X_IMAGE, WEIGHTS_IMAGE, IMAGES, DEPTH, COLUMNS, TILES,
) = instructions.DOTS.slots(*instructions.DOTS.names)  # fmt: skip


@intrinsic
def dot_rows(context, x, rows, depth, count, y):
    """Store the dot products of the vector *x* and of *count* rows of a matrix, float32.

    Args:
        context: the typing context of Numba.
        x: address of the vector.
        rows: address of the first row; rows follow one another.
        depth: number of values of ``x`` and of each row.
        count: number of rows, from 1 to ``LANES``.
        y: address of the *count* results.
    """

    def generate(lowering, builder, signature, arguments):
        x, rows, depth, count, y = arguments
        row_bytes, last = builder.shl(depth, integer(2)), builder.sub(count, integer(1))
        rows_at = []
        for i in range(LANES):  # after the last row, the last row is read again
            row = call(builder, "llvm.smin.i64", last.type, [last, integer(i)])
            rows_at.append(builder.add(rows, builder.mul(row, row_bytes)))

        def added(index, sums, read=lambda address: load(builder, address, KIND)):
            at = builder.shl(index, integer(2))
            value = read(builder.add(x, at))
            return [
                multiply_add(builder, value, read(builder.add(row, at)), total)
                for row, total in zip(rows_at, sums, strict=True)
            ]

        index, sums = repeated(builder, integer(0), depth, LANES, [ZERO] * LANES, added)
        rest = first_lanes(builder, builder.sub(depth, index), LANES)
        sums = added(index, sums, lambda address: masked_load(builder, address, rest, KIND))
        masked_store(builder, _totals(builder, sums), y, first_lanes(builder, count, LANES))
        return lowering.get_dummy_value()

    return types.void(*[i64] * 5), generate


def _totals(builder, vectors):
    """Return one vector, of which lane *i* is the sum of the lanes of ``vectors[i]``."""
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


def _adder(vectors, masked):
    """Return an intrinsic that computes *vectors* vectors of results of a vector-matrix product.

    If *masked*, *vectors* is 1, and only the first *count* lanes are read and written.
    """

    @intrinsic
    def add_rows(context, x, rows, row_bytes, depth, count, y):
        """Store ``sum(x[k] * rows[k])`` over *depth* rows that are *row_bytes* apart."""

        def generate(lowering, builder, signature, arguments):
            x, rows, row_bytes, depth, count, y = arguments
            mask = first_lanes(builder, count, LANES)
            loop = Loop(builder, depth)
            row = loop.carried(rows)
            sums = [loop.carried(ZERO) for _ in range(vectors)]
            at = builder.add(x, builder.shl(loop.index, integer(2)))
            value = splat(builder, load(builder, at, F32), LANES)
            found = []
            for n, total in enumerate(sums):
                place = builder.add(row, integer(4 * LANES * n))
                if masked:
                    weights = masked_load(builder, place, mask, KIND)
                else:
                    weights = load(builder, place, KIND)
                found.append(multiply_add(builder, value, weights, total))
            loop.close(builder.add(row, row_bytes), *found)
            for n, total in enumerate(found):
                place = builder.add(y, integer(4 * LANES * n))
                if masked:
                    masked_store(builder, total, place, mask)
                else:
                    store(builder, total, place)
            return lowering.get_dummy_value()

        return types.void(*[i64] * 6), generate

    return add_rows


add_several, add_one, add_part = _adder(AT_ONCE, False), _adder(1, False), _adder(1, True)


@kernel(instructions.DOTS)
def dots(record, tile, worker):
    """Compute this tile's columns of the products; matrices are ``[columns, depth]``.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    depth, columns = word(record, DEPTH), word(record, COLUMNS)
    groups = (columns + LANES - 1) // LANES
    units, tiles = word(record, IMAGES) * groups, word(record, TILES)
    for unit in range(units * tile // tiles, units * (tile + 1) // tiles):
        image, column = unit // groups, unit % groups * LANES
        dot_rows(
            word(record, X) + image * word(record, X_IMAGE),
            word(record, WEIGHTS) + image * word(record, WEIGHTS_IMAGE) + 4 * column * depth,
            depth,
            min(columns - column, LANES),
            word(record, Y) + 4 * (image * columns + column),
        )


@kernel(instructions.SUMS)
def sums(record, tile, worker):
    """Compute this tile's columns of the products; matrices are ``[depth, columns]``.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    columns, width = word(record, COLUMNS), AT_ONCE * LANES
    groups = (columns + width - 1) // width
    units, tiles = word(record, IMAGES) * groups, word(record, TILES)
    for unit in range(units * tile // tiles, units * (tile + 1) // tiles):
        image, column = unit // groups, unit % groups * width
        sum_rows(
            word(record, X) + image * word(record, X_IMAGE),
            word(record, WEIGHTS) + image * word(record, WEIGHTS_IMAGE) + 4 * column,
            4 * columns,
            word(record, DEPTH),
            min(columns - column, width),
            word(record, Y) + 4 * (image * columns + column),
        )


@jit
def sum_rows(x, rows, row_bytes, depth, count, y):
    """Compute up to ``AT_ONCE`` vectors of columns of a vector-matrix product.

    Args:
        x: address of the vector.
        rows: address of the first of the matrix's values in these columns.
        row_bytes: bytes from one row of the matrix to the next.
        depth: number of rows of the matrix.
        count: number of columns.
        y: address of the results.
    """
    if count == AT_ONCE * LANES:
        add_several(x, rows, row_bytes, depth, count, y)
        return
    for start in range(0, count, LANES):
        place, target, left = rows + 4 * start, y + 4 * start, count - start
        if left >= LANES:
            add_one(x, place, row_bytes, depth, left, target)
        else:
            add_part(x, place, row_bytes, depth, left, target)
