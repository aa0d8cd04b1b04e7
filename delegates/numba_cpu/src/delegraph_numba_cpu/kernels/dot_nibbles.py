"""Micro-kernels of products of bytes and 4-bit weights, two of which share a byte.

A weight is multiplied as the high half of a signed byte, 16 times what it is: one mask makes the
odd ones, a shift and a mask the even ones. Weights lie in the order in which they are read.
"""

from __future__ import annotations

from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.blocks.conv_int8 import HEADER_BYTES
from delegraph_numba_cpu.blocks.hybrid import GROUP_BYTES
from delegraph_numba_cpu.kernels import dot_ir, dot_lanes, neon_ir
from delegraph_numba_cpu.kernels.dot_int8 import SINGLE, WIDE, WIDE_ROWS
from delegraph_numba_cpu.kernels.machine import F32, I32
from delegraph_numba_cpu.kernels.vector_ir import (
    Loop,
    integer,
    load,
    multiply_add,
    store,
    vector,
)

i64 = types.int64

WIDTH = 4 if neon_ir.IS_THERE else dot_ir.LANES
"""Columns of a cell: of the sums that are kept in one vector."""

INTEGERS, FLOATS = vector(I32, WIDTH), vector(F32, WIDTH)


def _sums(builder, rows_at, weights, cells, steps):
    """Return the sums of products of each row with each cell's columns, int32, 16 times too large.

    Args:
        builder: appends instructions.
        rows_at: addresses of rows of unsigned bytes.
        weights: where the first cell's columns begin.
        cells: how many.
        steps: of eight bytes of each row.
    """
    if neon_ir.IS_THERE:
        places = [builder.add(weights, integer(4 * WIDTH * n)) for n in range(cells)]
        fours = builder.shl(steps, integer(1))
        return dot_lanes.products(builder, rows_at, places, GROUP_BYTES, fours, weights_a_byte=2)
    loop = Loop(builder, steps)
    sums = [[loop.carried(dot_ir.constant(0)) for _ in range(cells)] for _ in rows_at]
    place = builder.add(weights, builder.mul(loop.index, integer(GROUP_BYTES)))
    halves = [
        dot_ir.nibbles(builder, load(builder, builder.add(place, integer(64 * n)), INTEGERS))
        for n in range(cells)
    ]
    at = builder.shl(loop.index, integer(3))
    for half, columns in enumerate(zip(*halves, strict=True)):
        prepared = [dot_ir.prepare_weights(builder, column) for column in columns]
        offset = builder.add(at, integer(4 * half))
        for m, row in enumerate(rows_at):
            four = load(builder, builder.add(row, offset), I32)
            sums[m] = [
                dot_ir.dot(builder, total, four, weight)
                for total, weight in zip(sums[m], prepared, strict=True)
            ]
    loop.close(*(total for row in sums for total in row))
    return sums


def _scaled_sums(builder, rows_at, weights, biases, parts, steps):
    """Return biases plus what :func:`_sums` says of each part of rows, times its scales, float32.

    The scales of a part come after its weights.
    """
    loop = Loop(builder, parts)
    place, taken = loop.carried(weights), loop.carried(integer(0))
    totals = [[loop.carried(bias) for bias in biases] for _ in rows_at]
    rows_at = [builder.add(row, taken) for row in rows_at]
    sums = _sums(builder, rows_at, place, len(biases), steps)
    scales_at = builder.add(place, builder.mul(steps, integer(GROUP_BYTES)))
    found = []
    for n in range(len(biases)):
        scale = load(builder, builder.add(scales_at, integer(4 * WIDTH * n)), FLOATS)
        found.append(
            [
                multiply_add(builder, builder.sitofp(whole[n], FLOATS), scale, total[n])
                for whole, total in zip(sums, totals, strict=True)
            ]
        )
    rows = list(zip(*found, strict=True))
    loop.close(
        builder.add(scales_at, integer(GROUP_BYTES)),
        builder.add(taken, builder.shl(steps, integer(3))),
        *(total for row in rows for total in row),
    )
    return rows


def _tile(rows, blocks, *, by_parts):
    """Return an intrinsic that multiplies *rows* rows with *blocks* times 16 columns.

    With *by_parts*, each part of a row has scales of its own, and results are float32.
    """
    cells, kind = blocks * dot_ir.LANES // WIDTH, FLOATS if by_parts else INTEGERS

    @intrinsic
    def tile(context, a, row_bytes, weights, parts, steps, headers, acc):
        """Store bias + a @ weights; rows lie *row_bytes* apart, those of results a group."""

        def generate(lowering, builder, signature, arguments):
            a, row_bytes, weights, parts, steps, headers, acc = arguments
            rows_at = [builder.add(a, builder.mul(row_bytes, integer(m))) for m in range(rows)]
            biases = []
            for column in range(0, WIDTH * cells, WIDTH):
                block, lane = divmod(column, dot_ir.LANES)
                header = builder.add(headers, integer(block * HEADER_BYTES + 4 * lane))
                biases.append(load(builder, header, kind))
            if by_parts:
                found = _scaled_sums(builder, rows_at, weights, biases, parts, steps)
            else:
                found = [
                    [builder.add(*each) for each in zip(row, biases, strict=True)]
                    for row in _sums(builder, rows_at, weights, cells, steps)
                ]
            for m, row in enumerate(found):
                for n, value in enumerate(row):
                    place = integer(GROUP_BYTES * m + 4 * WIDTH * n)
                    store(builder, value, builder.add(acc, place))
            return lowering.get_dummy_value()

        return types.void(*[i64] * 7), generate

    return tile


nibbles_wide = _tile(WIDE_ROWS, WIDE, by_parts=False)
nibbles_single = _tile(1, SINGLE, by_parts=False)
parts_wide = _tile(WIDE_ROWS, WIDE, by_parts=True)
parts_single = _tile(1, SINGLE, by_parts=True)
