"""Register tiles of 8-bit products on AArch64, where an instruction reads four bytes of one lane.

The instruction multiplies these bytes with every column. So a row is loaded 16 bytes at a time, for
four steps.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen import dot_products, dot_products_neon
from delegraph_numba_cpu.codegen.dot_products_neon import V4I32, V16I8
from delegraph_numba_cpu.codegen.intrinsics import I32
from delegraph_numba_cpu.codegen.vector_ir import integer, load, repeated, splat, store, vector
from delegraph_numba_cpu.instructions.conv_int8 import HEADER_BYTES

i64 = types.int64


def dot_tile(rows, blocks):
    """Return an intrinsic that multiplies *rows* byte rows with *blocks* blocks of 16 columns."""

    @intrinsic
    def dot_tile(context, a, row_bytes, weights, block_bytes, steps, headers, sums, acc, acc_bytes):
        """Store ``bias + a @ weights + sums`` at *acc*, as int32.

        *headers* is the address of the first block's header, which begins with the biases. A row of
        *a* has *steps* times 4 unsigned bytes, and rows are *row_bytes* apart. Blocks of *weights*
        are *block_bytes* apart. *sums* is the address of an int32 for each row, or 0 for none. Rows
        of results are *acc_bytes* apart, and the blocks of a row 64 bytes.
        """

        def generate(lowering, builder, signature, arguments):
            a, row_bytes, weights, block_bytes, steps, headers, sums, acc, acc_bytes = arguments
            rows_at = [builder.add(a, builder.mul(row_bytes, integer(m))) for m in range(rows)]
            blocks_at = [
                builder.add(weights, builder.mul(block_bytes, integer(n))) for n in range(blocks)
            ]
            places = [
                builder.add(block, integer(16 * part)) for block in blocks_at for part in range(4)
            ]
            found = products(builder, rows_at, places, 64, steps)
            for m, values in enumerate(dot_products.add_sums(builder, found, sums)):
                row = builder.add(acc, builder.mul(acc_bytes, integer(m)))
                for n, value in enumerate(values):
                    header = integer(n // 4 * HEADER_BYTES + n % 4 * 16)
                    bias = load(builder, builder.add(headers, header), V4I32)
                    store(builder, builder.add(value, bias), builder.add(row, integer(16 * n)))
            return lowering.get_dummy_value()

        return types.void(*[i64] * 9), generate

    return dot_tile


def products(builder, rows_at, places, step_bytes, steps, weights_a_byte=1):
    """Return the sums of products of each row with four columns at each of several places.

    The result is a list for each row, with a vector of 4 int32 for each place.

    Args:
        builder: LLVM IR builder, to which instructions are added.
        rows_at: addresses of rows of unsigned bytes.
        places: addresses of 16 bytes, four for each of four columns.
        step_bytes: bytes to the next 16 bytes of these columns.
        steps: number of steps of four bytes of a row, a multiple of *weights_a_byte*.
        weights_a_byte: 2 for weights of :func:`dot_products.nibbles`, which serve two steps.
    """
    size = len(dot_products_neon.NOTHING)
    values = [part for _ in rows_at for _ in places for part in dot_products_neon.NOTHING]

    def weights_of(index, count):
        """Yield the weights at all places for each of *count* steps, from step *index* on."""
        for k in range(0, count, weights_a_byte):
            step = builder.udiv(builder.add(index, integer(k)), integer(weights_a_byte))
            at = builder.mul(step, integer(step_bytes))
            found = [load(builder, builder.add(place, at), V16I8) for place in places]
            if weights_a_byte == 1:
                yield found
            else:
                yield from zip(
                    *(dot_products.nibbles(builder, each) for each in found), strict=True
                )

    def added(values, index, count):
        """Append the products of *count* steps from *index* on; return the new values."""
        at = builder.shl(index, integer(2))
        kind = I32 if count == 1 else vector(I32, count)
        loaded = [load(builder, builder.add(row, at), kind) for row in rows_at]
        fours = [dot_products.seen(builder, each) for each in loaded]
        for k, weights in enumerate(weights_of(index, count)):
            taken = [_copies(builder, four, k) for four in fours]
            following = []
            for n, weight in enumerate(weights):
                following.append(
                    [
                        dot_products_neon.dot(builder, values[start : start + size], each, weight)
                        for m, each in enumerate(taken)
                        for start in [size * (m * len(places) + n)]
                    ]
                )
            values = [
                part for m in range(len(rows_at)) for column in following for part in column[m]
            ]
        return values

    index = integer(0)
    for count in (4, weights_a_byte):
        index, values = repeated(
            builder, index, steps, count, values, lambda i, values, n=count: added(values, i, n)
        )
    cells = [
        dot_products_neon.total(builder, values[i : i + size]) for i in range(0, len(values), size)
    ]
    width = len(places)
    return [cells[width * m : width * (m + 1)] for m in range(len(rows_at))]


def _copies(builder, four, k):
    """Return 16 bytes: four copies of the four bytes in the int32 *four*.

    If *four* is a vector of four int32, they are copies of its lane *k*.
    """
    if isinstance(four.type, ir.VectorType):
        lanes = ir.Constant(V4I32, [k] * 4)
        return builder.bitcast(builder.shuffle_vector(four, four, lanes), V16I8)
    return builder.bitcast(splat(builder, four, 4), V16I8)
