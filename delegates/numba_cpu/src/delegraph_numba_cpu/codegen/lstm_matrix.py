"""Products of a few rows of unsigned bytes and strips of weights (64 columns of signed bytes).

They are used where a matrix multiplies one vector after another. Weights are read once, in order.
"""

from __future__ import annotations

from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen import dot_products
from delegraph_numba_cpu.codegen.conv_int8_micro_kernels import flip_1, flip_8
from delegraph_numba_cpu.codegen.dot_products import V16I32, constant, dot
from delegraph_numba_cpu.codegen.intrinsics import I32, jit
from delegraph_numba_cpu.codegen.registry import level
from delegraph_numba_cpu.codegen.vector_ir import Loop, integer, load, store

STRIP = 64
"""Number of columns of a strip."""

DEPTH = 8
"""Number that divides the number of bytes of a row: rows are padded to a multiple of it."""

_HAS_VNNI = "avx512vnni" in level().needs
_BLOCKS = 4 if _HAS_VNNI else 2
MANY = 4 if _HAS_VNNI else 2
"""Number of rows that :func:`dot_rows` multiplies at once."""

i64 = types.int64


def _dot_block(rows):
    """Return an intrinsic that multiplies *rows* rows by as many columns as registers hold."""
    sets = 2 if rows == 1 else 1  # one row has too few sums to hide the time of a product

    @intrinsic
    def dot_block(context, x, row_bytes, weights, bias, target, target_bytes):
        """Store ``bias + x @ weights`` at *target*, as int32.

        All but the sizes are addresses. Rows of unsigned bytes *x* are *row_bytes* long, without
        gaps, and rows of results *target_bytes* apart.
        """

        def generate(lowering, builder, signature, arguments):
            x, row_bytes, weights, bias, target, target_bytes = arguments
            rows_at = [builder.add(x, builder.mul(row_bytes, integer(m))) for m in range(rows)]
            first = [load(builder, builder.add(bias, integer(64 * n)), V16I32)
                     for n in range(_BLOCKS)]  # fmt: skip
            loop = Loop(builder, row_bytes, DEPTH)
            chains = [
                [[loop.carried(start if s == 0 else constant(0)) for start in first]
                 for _ in range(rows)]
                for s in range(sets)
            ]  # fmt: skip
            totals = [[list(row) for row in chain] for chain in chains]
            for half in (0, 1):
                chain = totals[half % sets]
                offset = builder.mul(loop.index, integer(STRIP))
                place = builder.add(weights, builder.add(offset, integer(256 * half)))
                prepared = [
                    dot_products.prepare_weights(
                        builder, load(builder, builder.add(place, integer(64 * n)), V16I32)
                    )
                    for n in range(_BLOCKS)
                ]
                for m, row in enumerate(rows_at):
                    at = builder.add(row, builder.add(loop.index, integer(4 * half)))
                    four = dot_products.seen(builder, load(builder, at, I32))
                    chain[m] = [
                        dot(builder, total, four, weight)
                        for total, weight in zip(chain[m], prepared, strict=True)
                    ]
            loop.close(*(total for chain in totals for row in chain for total in row))
            for m in range(rows):
                for n in range(_BLOCKS):
                    value = totals[0][m][n]
                    for other in totals[1:]:
                        value = builder.add(value, other[m][n])
                    place = builder.add(target, builder.mul(target_bytes, integer(m)))
                    store(builder, value, builder.add(place, integer(64 * n)))
            return lowering.get_dummy_value()

        return types.void(*[i64] * 6), generate

    return dot_block


_dot_row_block, _dot_rows_block = _dot_block(1), _dot_block(MANY)


@jit
def dot_row(x, row_bytes, weights, bias, target):
    """Store 64 int32: the product of a row and a strip of weights, plus the bias.

    *x* is the address of *row_bytes* unsigned bytes; all other arguments are addresses.
    """
    for n in range(0, 4, _BLOCKS):
        _dot_row_block(x, row_bytes, weights + 64 * n, bias + 64 * n, target + 64 * n, 256)


@jit
def dot_rows(x, row_bytes, weights, bias, target):
    """Store the products of :data:`MANY` rows at *x* and a strip of weights, plus the bias.

    Results are int32 ``[MANY, 64]``. A row has *row_bytes* unsigned bytes, and the next row follows
    without a gap. All other arguments are addresses.
    """
    for n in range(0, 4, _BLOCKS):
        _dot_rows_block(x, row_bytes, weights + 64 * n, bias + 64 * n, target + 64 * n, 256)


@jit
def copy_unsigned(source, target, count):
    """Copy *count* int8 from *source* to *target* as unsigned bytes: each value plus 128."""
    whole = count // 8 * 8
    for i in range(0, whole, 8):
        flip_8(source + i, target + i, 128)
    for i in range(whole, count):
        flip_1(source + i, target + i, 128)
