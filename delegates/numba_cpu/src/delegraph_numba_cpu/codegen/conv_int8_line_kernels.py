"""Micro-kernels of 8-bit convolutions that read windows from the padded lines of an image.

A pixel is given by the address of its window's first byte. A window consists of one piece of
adjacent bytes per line, and a piece of steps of 4 bytes. No window is copied.
"""

from __future__ import annotations

from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen import dot_products
from delegraph_numba_cpu.codegen.conv_int8_micro_kernels import (
    NARROW_ROWS,
    NARROW_TALL,
    SHORT_SPLIT,
    TALL_SPLIT,
    V8I32,
    WIDE,
    WIDE_ROWS,
    WIDE_TALL,
)
from delegraph_numba_cpu.codegen.dot_products import V16I32, dot
from delegraph_numba_cpu.codegen.intrinsics import I32, I64
from delegraph_numba_cpu.codegen.vector_ir import Loop, integer, load, store
from delegraph_numba_cpu.instructions.conv_int8 import HEADER_BYTES

i64 = types.int64


def _products(builder, table, lines, line_bytes, weights, steps, sums, add_step):
    """Append the loops over the lines of windows and over their steps; return the sums.

    Args:
        builder: LLVM IR builder, to which instructions are added.
        table: addresses of the pixels' windows.
        lines: number of lines of a window.
        line_bytes: bytes from one line to the next.
        weights: address of the weights of the first step; the next step's weights are 64 bytes
            later.
        steps: number of steps of a line.
        sums: start values.
        add_step: function ``(sums, index, pixels, weights)`` that appends step *index* of the
            pieces at the addresses *pixels*, and returns the next sums.
    """
    outer = Loop(builder, lines)
    place, line = outer.carried(weights), outer.carried(integer(0))
    sums = [outer.carried(value) for value in sums]
    pixels = [builder.add(pixel, line) for pixel in table]
    inner = Loop(builder, steps)
    at = inner.carried(place)
    found = add_step([inner.carried(value) for value in sums], inner.index, pixels, at)
    following = builder.add(at, integer(64))
    inner.close(following, *found)
    outer.close(following, builder.add(line, line_bytes), *found)
    return found


def _table(builder, pixels, rows):
    return [load(builder, builder.add(pixels, integer(8 * m)), I64) for m in range(rows)]


def _dot_tile(rows, blocks):
    """Return an intrinsic that multiplies the windows of *rows* pixels with *blocks* blocks.

    A block is 16 columns of the weights.
    """

    @intrinsic
    def dot_tile(
        context, pixels, lines, line_bytes, weights, block_bytes, steps, headers, acc, acc_bytes
    ):
        """Store ``bias + windows @ weights``, int32, for windows whose addresses are at *pixels*.

        A window has *steps* times 4 unsigned bytes in each of *lines* lines, which are *line_bytes*
        apart. *headers* is the address of the first block's header, which begins with the biases.
        Rows of results are *acc_bytes* apart, and the blocks of a row 64 bytes.
        """

        def generate(lowering, builder, signature, arguments):
            pixels, lines, line_bytes, weights, block_bytes, steps, headers, acc, acc_bytes = (
                arguments
            )
            biases = [
                load(builder, builder.add(headers, integer(n * HEADER_BYTES)), V16I32)
                for n in range(blocks)
            ]

            def add_step(sums, index, addresses, place):
                prepared = []
                for n in range(blocks):
                    block = builder.add(place, builder.mul(block_bytes, integer(n)))
                    taken = load(builder, block, V16I32)
                    prepared.append(dot_products.prepare_weights(builder, taken))
                offset = builder.shl(index, integer(2))
                fours = [load(builder, builder.add(at, offset), I32) for at in addresses]
                factors = [(four, weight) for four in fours for weight in prepared]
                return [dot(builder, x, *pair) for x, pair in zip(sums, factors, strict=True)]

            found = _products(
                builder, _table(builder, pixels, rows), lines, line_bytes, weights, steps,
                biases * rows, add_step,
            )  # fmt: skip
            for i, value in enumerate(found):
                row, column = builder.mul(acc_bytes, integer(i // blocks)), 64 * (i % blocks)
                store(builder, value, builder.add(builder.add(acc, row), integer(column)))
            return lowering.get_dummy_value()

        return types.void(*[i64] * 9), generate

    return dot_tile


lines_wide, lines_wide_tall = _dot_tile(WIDE_ROWS, WIDE), _dot_tile(WIDE_TALL, WIDE)
lines_narrow, lines_narrow_tall = _dot_tile(NARROW_ROWS, 1), _dot_tile(NARROW_TALL, 1)


def _dot_split(rows):
    """Return an intrinsic that multiplies the windows of *rows* pixels with 8 columns.

    Lines were converted to int16 by :func:`conv_int8_micro_kernels.split_rows`.
    """

    @intrinsic
    def dot_split(context, pixels, lines, line_bytes, weights, steps, header, acc, acc_bytes):
        """Store ``bias + windows @ weights``, int32, for windows whose addresses are at *pixels*.

        A window has *steps* times 4 int16 in each of *lines* lines, which are *line_bytes* apart.
        *header* is the address of the biases. Rows of results are *acc_bytes* apart.
        """

        def generate(lowering, builder, signature, arguments):
            pixels, lines, line_bytes, weights, steps, header, acc, acc_bytes = arguments

            def add_step(sums, index, addresses, place):
                prepared = dot_products.prepare_weights(builder, load(builder, place, V8I32))
                offset, found = builder.shl(index, integer(3)), []
                for at, value in zip(addresses, sums, strict=True):
                    first = builder.add(at, offset)
                    halves = [load(builder, builder.add(first, integer(i)), I32) for i in (0, 4)]
                    found.append(dot_products.dot_halves(builder, value, halves, prepared))
                return found

            found = _products(
                builder, _table(builder, pixels, rows), lines, line_bytes, weights, steps,
                [load(builder, header, V8I32)] * rows, add_step,
            )  # fmt: skip
            for m, value in enumerate(found):
                store(builder, value, builder.add(acc, builder.mul(acc_bytes, integer(m))))
            return lowering.get_dummy_value()

        return types.void(*[i64] * 8), generate

    return dot_split


lines_split, lines_split_tall = _dot_split(SHORT_SPLIT), _dot_split(TALL_SPLIT)
