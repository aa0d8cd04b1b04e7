"""Micro-kernels of products of bytes and weights of 8 or 4 bits, in groups of 64 outputs.

Weights are in the order in which they are read. Two 4-bit weights share a byte. Each is multiplied
as the high half of a signed byte, that is as 16 times its value. A mask extracts the odd weights; a
shift and a mask extract the even weights.
"""

from __future__ import annotations

from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen import conv_int8_neon, dot_products, dot_products_neon
from delegraph_numba_cpu.codegen.conv_int8_micro_kernels import (
    NARROW_TALL,
    SINGLE,
    WIDE,
    WIDE_TALL,
)
from delegraph_numba_cpu.codegen.intrinsics import F32, I16, I32
from delegraph_numba_cpu.codegen.vector_ir import (
    Loop,
    integer,
    load,
    multiply_add,
    store,
    vector,
    widened_halves,
)
from delegraph_numba_cpu.instructions.conv_hybrid import GROUP_BYTES, HEADER_BYTES, SCALE_BYTES

i64 = types.int64

WIDTH = 4 if dot_products_neon.IS_THERE else dot_products.LANES
"""Number of columns of a cell: adjacent columns whose sums are in one vector."""

INTEGERS, FLOATS, HALVES = vector(I32, WIDTH), vector(F32, WIDTH), vector(I16, WIDTH)


def _sums(builder, rows_at, weights, cells, steps, weights_a_byte):
    """Append loops that multiply each row with the columns of each cell; return the int32 sums.

    A cell is as many adjacent columns as a vector has sums (``WIDTH``).

    Args:
        builder: LLVM IR builder, to which instructions are added.
        rows_at: addresses of rows of unsigned bytes.
        weights: address of the first cell's columns.
        cells: number of cells.
        steps: number of steps, of four bytes of each row, or of eight if two weights share a byte.
        weights_a_byte: 1 or 2; sums are 16 times too large for 2.
    """
    if dot_products_neon.IS_THERE:
        places = [builder.add(weights, integer(4 * WIDTH * n)) for n in range(cells)]
        fours = builder.mul(steps, integer(weights_a_byte))
        return conv_int8_neon.products(builder, rows_at, places, GROUP_BYTES, fours, weights_a_byte)
    loop = Loop(builder, steps)
    sums = [[loop.carried(dot_products.constant(0)) for _ in range(cells)] for _ in rows_at]
    place = builder.add(weights, builder.mul(loop.index, integer(GROUP_BYTES)))
    loaded = [load(builder, builder.add(place, integer(64 * n)), INTEGERS) for n in range(cells)]
    taken = [loaded]
    if weights_a_byte == 2:
        halves = (dot_products.nibbles(builder, each) for each in loaded)
        taken = [list(columns) for columns in zip(*halves, strict=True)]
    at = builder.mul(loop.index, integer(4 * weights_a_byte))
    for k, columns in enumerate(taken):
        prepared = [dot_products.prepare_weights(builder, column) for column in columns]
        offset = builder.add(at, integer(4 * k))
        for m, row in enumerate(rows_at):
            four = load(builder, builder.add(row, offset), I32)
            sums[m] = [
                dot_products.dot(builder, total, four, weight)
                for total, weight in zip(sums[m], prepared, strict=True)
            ]
    loop.close(*(total for row in sums for total in row))
    return sums


def _scaled_sums(builder, rows_at, weights, block, biases, parts, steps):
    """Return float32 sums for 4-bit weights that have a separate scale for each part of a row.

    A sum is the bias plus, for each part, the sum of products times the part's scale. Two weights
    share a byte. The scales of a part, for all 64 outputs, are stored after its weights as float16.

    Args:
        builder: LLVM IR builder, to which instructions are added.
        rows_at: addresses of rows of unsigned bytes.
        weights: address of the weights of a group of 64 outputs.
        block: number of the first block of 16 outputs to compute.
        biases: vectors of the biases, one for each cell of ``WIDTH`` outputs.
        parts: number of parts of a row.
        steps: number of steps of a part, each of eight bytes of a row.

    Returns:
        For each row, a tuple with a vector of sums for each cell.
    """
    loop = Loop(builder, parts)
    place, taken = loop.carried(weights), loop.carried(integer(0))
    totals = [[loop.carried(bias) for bias in biases] for _ in rows_at]
    rows_at = [builder.add(row, taken) for row in rows_at]
    first = builder.add(place, builder.mul(block, integer(64)))
    sums = _sums(builder, rows_at, first, len(biases), steps, 2)
    end = builder.add(place, builder.mul(steps, integer(GROUP_BYTES)))
    scales_at = builder.add(end, builder.mul(block, integer(SCALE_BYTES // 4)))
    found = []
    for n in range(len(biases)):
        halves = load(builder, builder.add(scales_at, integer(2 * WIDTH * n)), HALVES)
        scale = widened_halves(builder, halves)
        found.append(
            [
                multiply_add(builder, builder.sitofp(whole[n], FLOATS), scale, total[n])
                for whole, total in zip(sums, totals, strict=True)
            ]
        )
    rows = list(zip(*found, strict=True))
    loop.close(
        builder.add(end, integer(SCALE_BYTES)),
        builder.add(taken, builder.shl(steps, integer(3))),
        *(total for row in rows for total in row),
    )
    return rows


def _tile(rows, blocks, weights_a_byte, *, by_parts=False):
    """Return an intrinsic that multiplies *rows* rows with *blocks* blocks of 16 columns.

    *weights_a_byte* weights, 1 or 2, share a byte. With *by_parts*, each part of a row has separate
    scales, and results are float32.
    """
    cells, kind = blocks * dot_products.LANES // WIDTH, FLOATS if by_parts else INTEGERS

    @intrinsic
    def tile(context, a, row_bytes, weights, block, parts, steps, headers, acc):
        """Store ``bias + a @ weights`` for the rows at *a*, which are *row_bytes* apart.

        Bytes of *a* are unsigned. A row has *parts* parts of *steps* steps with separate scales, or
        *steps* steps; a step is 4 bytes, or 8 if two weights share a byte.

        Rows of results begin at *acc*, and are 64 values apart. *weights* is the address of a group
        of 64 outputs, and *block* the number of its first block to compute. *headers* is the
        address of the first header, which has the bias of its columns.
        """

        def generate(lowering, builder, signature, arguments):
            a, row_bytes, weights, block, parts, steps, headers, acc = arguments
            rows_at = [builder.add(a, builder.mul(row_bytes, integer(m))) for m in range(rows)]
            biases = []
            for column in range(0, WIDTH * cells, WIDTH):
                nth, lane = divmod(column, dot_products.LANES)
                header = builder.add(headers, integer(nth * HEADER_BYTES + 4 * lane))
                biases.append(load(builder, header, kind))
            if by_parts:
                found = _scaled_sums(builder, rows_at, weights, block, biases, parts, steps)
            else:
                first = builder.add(weights, builder.mul(block, integer(64)))
                found = [
                    [builder.add(*each) for each in zip(row, biases, strict=True)]
                    for row in _sums(builder, rows_at, first, cells, steps, weights_a_byte)
                ]
            for m, row in enumerate(found):
                for n, value in enumerate(row):
                    place = integer(GROUP_BYTES * m + 4 * WIDTH * n)
                    store(builder, value, builder.add(acc, place))
            return lowering.get_dummy_value()

        return types.void(*[i64] * 8), generate

    return tile


SHORT = min(WIDE_TALL, 4)
"""Number of rows of the register tiles that are used when few rows remain."""


def _tiles(weights_a_byte, *, by_parts=False):
    """Return three intrinsics of :func:`_tile`: for ``WIDE_TALL`` rows, ``SHORT`` rows and one row.

    For the arguments see :func:`_tile`.
    """
    sizes = (WIDE_TALL, WIDE), (SHORT, WIDE), (1, SINGLE)
    return [_tile(*size, weights_a_byte, by_parts=by_parts) for size in sizes]


bytes_wide, bytes_short, bytes_single = _tiles(1)
bytes_narrow = bytes_wide if (NARROW_TALL, 1) == (WIDE_TALL, WIDE) else _tile(NARROW_TALL, 1, 1)
nibbles_wide, nibbles_short, nibbles_single = _tiles(2)
parts_wide, parts_short, parts_single = _tiles(2, by_parts=True)
