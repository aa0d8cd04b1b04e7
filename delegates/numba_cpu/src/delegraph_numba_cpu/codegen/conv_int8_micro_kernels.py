"""Micro-kernels of 8-bit products: dot products into accumulators, accumulators into bytes.

Weights are stored in blocks of 16 columns. A step is 4 bytes of a row, and 4 bytes of each column.
Accumulators are stored in memory between products and conversion. This costs little compared with
the arithmetic, and avoids a micro-kernel for every combination of the two steps.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen import conv_int8_neon, dot_products, dot_products_neon
from delegraph_numba_cpu.codegen.dot_products import (
    GROUP,
    V16I32,
    add_sums,
    constant,
    dot,
)
from delegraph_numba_cpu.codegen.intrinsics import I8, I32, I64, call, jit
from delegraph_numba_cpu.codegen.registry import level
from delegraph_numba_cpu.codegen.vector_ir import (
    Loop,
    first_lanes,
    integer,
    load,
    load_first,
    repeated,
    splat,
    store,
    strided,
)
from delegraph_numba_cpu.instructions.conv_int8 import HEADER_BYTES, SPLIT_ROWS

_SIZES = {
    "amx_int8": ((7, 2), (14, 1), (1, 4), 4),
    "avx512_vbmi": ((7, 2), (14, 1), (1, 4), 4),
    "avx512_vnni": ((7, 2), (14, 1), (1, 4), 4),
    "avx_vnni": ((6, 1), (6, 1), (1, 4), 4),
    "avx2": ((4, 1), (4, 1), (1, 2), 3),
    "neon_i8mm": ((4, 1), (4, 1), (1, 2), 1),
    "neon_dotprod": ((4, 1), (4, 1), (1, 2), 1),
    "neon": ((2, 1), (2, 1), (1, 1), 1),
    "generic": ((2, 1), (2, 1), (1, 2), 2),
}
(WIDE_ROWS, WIDE), (NARROW_ROWS, _), (_, SINGLE), TAP_PIXELS = _SIZES[level().name]
"""Numbers of rows, and of blocks of 16 columns, of three register tiles: wide, narrow, single
row."""

WIDE_TALL, NARROW_TALL = (8, 16) if level().vector_bytes == 64 else (WIDE_ROWS, NARROW_ROWS)
"""Numbers of rows of the taller wide and narrow tiles, for images whose sizes are no multiples of
7."""

SHORT_SPLIT, TALL_SPLIT = 7, SPLIT_ROWS
"""Numbers of rows of the lower and the taller register tile for rows from :func:`split_rows`."""

i64 = types.int64
V8I32 = ir.VectorType(I32, 8)


def _dot_tile(rows, blocks, chains=1):
    """Return an intrinsic that multiplies *rows* rows of bytes with *blocks* blocks of 16 columns.

    Consecutive steps are added to *chains* different accumulators, so that an addition seldom waits
    for the previous one.
    """

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
            size = rows * blocks

            def add_steps(count, values):
                """Append instructions that add the products of *count* more steps to the sums.

                *values* are the sums, and the addresses of weights and bytes. The result has the
                new sums, and the next addresses.
                """
                *found, place, row = values
                for k in range(count):
                    prepared = []
                    for n in range(blocks):
                        block = builder.add(place, builder.mul(block_bytes, integer(n)))
                        taken = load(builder, block, V16I32)
                        prepared.append(dot_products.prepare_weights(builder, taken))
                    first = k % chains * size
                    for m, at in enumerate(strided(builder, row, row_bytes, rows)):
                        four = load(builder, at, I32)
                        for n, weight in enumerate(prepared):
                            i = first + m * blocks + n
                            found[i] = dot(builder, found[i], four, weight)
                    place, row = builder.add(place, integer(64)), builder.add(row, integer(4))
                return [*found, place, row]

            biases = [
                load(builder, builder.add(headers, integer(n * HEADER_BYTES)), V16I32)
                for n in range(blocks)
            ]
            zeros = [constant(0)] * (size * (chains - 1))
            index, values = integer(0), [*biases * rows, *zeros, weights, a]
            for count in sorted({chains, 1}, reverse=True):
                index, values = repeated(
                    builder, index, steps, count, values, lambda _, x, n=count: add_steps(n, x)
                )
            found = values[:size]
            for i in range(size, size * chains):
                found[i % size] = builder.add(found[i % size], values[i])
            of_rows = [found[m : m + blocks] for m in range(0, size, blocks)]
            for m, values in enumerate(add_sums(builder, of_rows, sums)):
                row = builder.add(acc, builder.mul(acc_bytes, integer(m)))
                for n, value in enumerate(values):
                    store(builder, value, builder.add(row, integer(64 * n)))
            return lowering.get_dummy_value()

        return types.void(*[i64] * 9), generate

    return dot_tile


def _lane_tile(rows, blocks, chains=1):
    """Return the intrinsic of :func:`_dot_tile` for AArch64.

    *chains* has no effect, because even one row has enough sums there.
    """
    return conv_int8_neon.dot_tile(rows, blocks)


_tile = _lane_tile if dot_products_neon.IS_THERE else _dot_tile
dot_wide = _tile(WIDE_ROWS, WIDE)
dot_narrow = dot_wide if (NARROW_ROWS, 1) == (WIDE_ROWS, WIDE) else _tile(NARROW_ROWS, 1)
dot_wide_tall = dot_wide if WIDE_TALL == WIDE_ROWS else _tile(WIDE_TALL, WIDE)
dot_narrow_tall = dot_narrow if NARROW_TALL == NARROW_ROWS else _tile(NARROW_TALL, 1)
dot_single = _tile(1, SINGLE)
dot_one = _tile(1, 1, chains=4)

HAS_SPLIT_ROWS = dot_products.HAS_MADD
"""Whether products of several rows use :func:`split_rows`."""


def _dot_split(rows):
    """Return an intrinsic that multiplies *rows* rows of int16 by 8 columns of weights.

    The rows are those that :func:`split_rows` makes from unsigned bytes.
    """

    @intrinsic
    def dot_split(context, a, row_bytes, weights, steps, header, sums, acc, acc_bytes):
        """Store ``bias + a @ weights + sums`` at *acc*, as int32.

        *header* is the address of the biases. A row of *a* has *steps* times 4 int16, and rows are
        *row_bytes* apart. *sums* is the address of an int32 for each row, or 0 for none. Rows of
        results are *acc_bytes* apart. With only 8 columns, all sums and weights fit into registers.
        """

        def generate(lowering, builder, signature, arguments):
            a, row_bytes, weights, steps, header, sums, acc, acc_bytes = arguments
            numbers = range(rows)
            rows_at = [builder.add(a, builder.mul(row_bytes, integer(m))) for m in numbers]
            bias = load(builder, header, V8I32)
            loop = Loop(builder, steps)
            carried = [loop.carried(bias) for _ in numbers]
            place = builder.add(weights, builder.shl(loop.index, integer(6)))
            prepared = dot_products.prepare_weights(builder, load(builder, place, V8I32))
            at = builder.shl(loop.index, integer(3))
            found = []
            for row, value in zip(rows_at, carried, strict=True):
                place = builder.add(row, at)
                halves = [load(builder, builder.add(place, integer(i)), I32) for i in (0, 4)]
                found.append(dot_products.dot_halves(builder, value, halves, prepared))
            loop.close(*found)
            for m, (value,) in enumerate(add_sums(builder, [[value] for value in found], sums)):
                store(builder, value, builder.add(acc, builder.mul(acc_bytes, integer(m))))
            return lowering.get_dummy_value()

        return types.void(*[i64] * 8), generate

    return dot_split


dot_split, dot_split_tall = _dot_split(SHORT_SPLIT), _dot_split(TALL_SPLIT)


def _splitter(dwords):
    """Return an intrinsic that converts the bytes of *dwords* 32-bit words to int16.

    It is called as ``(source, target)``. For each word, it stores the two even bytes, then the two
    odd bytes.
    """
    kind = ir.VectorType(I32, dwords)

    @intrinsic
    def split(context, source, target):
        def generate(lowering, builder, signature, arguments):
            source, target = arguments
            halves = dot_products.spread_halves(builder, load(builder, source, kind))
            store(builder, halves, target)
            return lowering.get_dummy_value()

        return types.void(i64, i64), generate

    return split


split_4, split_1 = _splitter(4), _splitter(1)


@jit
def split_rows(a, a_bytes, rows, steps, target):
    """Convert *rows* rows of unsigned bytes to int16, as :func:`_dot_split` reads them.

    The rows begin at *a*, and are *a_bytes* apart; a row has *steps* times 4 bytes. Of each 4
    bytes, the two even ones come first. Results follow one another from the address *target* on.
    """
    for _ in range(rows):
        for step in range(0, steps - 3, 4):
            split_4(a + 4 * step, target + 8 * step)
        for step in range(steps // 4 * 4, steps):
            split_1(a + 4 * step, target + 8 * step)
        a, target = a + a_bytes, target + 8 * steps


def _dot_taps(pixels, vectors, group):
    """Return an intrinsic that computes adjacent output pixels of an int8 depthwise convolution.

    Args:
        pixels: number of outputs.
        vectors: number of computed vectors of 16 channels.
        group: number of vectors of 16 channels in a pixel of the packed line and of the results.
    """

    @intrinsic
    def dot_taps(
        context, line, pixel_bytes, vector_bytes, column_bytes, weights, offsets, count, header, acc
    ):
        """Store the bias plus each pixel's sum over all taps, int32 ``[pixels, group, 16]``.

        *pixel_bytes*, *vector_bytes* and *column_bytes* are the distances of pixels, of a pixel's
        vectors, and of columns of the packed *line*. *offsets* and *weights* are the addresses of
        the offsets and the weights of *count* taps. *header* is the address of the first header,
        which begins with biases, and *acc* that of the results.
        """

        def generate(lowering, builder, signature, arguments):
            (
                line, pixel_bytes, vector_bytes, column_bytes, weights, offsets, count, header, acc,
            ) = arguments  # fmt: skip
            numbers = range(vectors)
            places = [integer(64 * v) for v in numbers]
            vectors_at = [builder.mul(vector_bytes, integer(v)) for v in numbers]
            biases = [
                load(builder, builder.add(header, integer(v * HEADER_BYTES)), V16I32)
                for v in range(vectors)
            ]
            pixels_at = [builder.mul(pixel_bytes, integer(i)) for i in range(pixels)]
            loop = Loop(builder, count)
            carried = [[loop.carried(bias) for bias in biases] for _ in range(pixels)]
            at = builder.add(weights, builder.mul(loop.index, integer(64 * group)))
            prepared = [
                dot_products.prepare_weights(builder, load(builder, builder.add(at, place), V16I32))
                for place in places
            ]
            offset = load(builder, builder.add(offsets, builder.shl(loop.index, integer(3))), I64)
            start = builder.add(line, builder.mul(offset, column_bytes))
            found = []
            for values, pixel in zip(carried, pixels_at, strict=True):
                at = builder.add(start, pixel)
                found += [
                    dot(builder, value, load(builder, builder.add(at, place), V16I32), weight)
                    for value, place, weight in zip(values, vectors_at, prepared, strict=True)
                ]
            loop.close(*found)
            for i, value in enumerate(found):
                place = integer(64 * (i // vectors * group + i % vectors))
                store(builder, value, builder.add(acc, place))
            return lowering.get_dummy_value()

        return types.void(*[i64] * 9), generate

    return dot_taps


def _dot_group(pixels):
    """Return a function that works like ``dot_taps`` for *pixels* pixels of 64 channels."""
    if level().vector_bytes != 32:
        return _dot_taps(pixels, GROUP, GROUP)
    dot_vector = _dot_taps(pixels, 1, GROUP)

    @jit
    def dot_vectors(
        line, pixel_bytes, vector_bytes, column_bytes, weights, offsets, count, header, acc
    ):
        for _ in range(GROUP):
            dot_vector(
                line, pixel_bytes, vector_bytes, column_bytes, weights, offsets, count, header, acc
            )
            line, weights = line + vector_bytes, weights + 64
            header, acc = header + HEADER_BYTES, acc + 64

    return dot_vectors


dot_taps, dot_taps_64 = _dot_taps(TAP_PIXELS, 1, 1), _dot_group(TAP_PIXELS)
dot_tap, dot_tap_64 = _dot_taps(1, 1, 1), _dot_group(1)


@intrinsic
def fill_dwords(context, target, value):
    """Store 16 copies of the low 32 bits of *value* at the address *target*."""

    def generate(lowering, builder, signature, arguments):
        target, value = arguments
        store(builder, splat(builder, builder.trunc(value, I32), 16), target)
        return lowering.get_dummy_value()

    return types.void(i64, i64), generate


@intrinsic
def sum_bytes(context, source, count):
    """Return the sum of *count* unsigned bytes at *source*, each minus ``CpuLevel.byte_shift``."""

    def generate(lowering, builder, signature, arguments):
        source, count = arguments
        wide = ir.VectorType(I8, 64)
        ones = dot_products.prepare_weights(builder, constant(0x01010101))
        loop = Loop(builder, count, 64)
        acc = loop.carried(constant(0))
        place, left = builder.add(source, loop.index), builder.sub(count, loop.index)
        with builder.if_else(builder.icmp_signed(">=", left, integer(64))) as (whole, part):
            with whole:
                full, before = dot_products.seen(builder, load(builder, place, wide)), builder.block
            with part:
                some = dot_products.seen(builder, load_first(builder, place, left, wide))
                if level().byte_shift:
                    mask = first_lanes(builder, left, 64)
                    some = builder.select(mask, some, constant(0, wide))
                after = builder.block
        value = builder.phi(wide)
        value.add_incoming(full, before)
        value.add_incoming(some, after)
        total = dot(builder, acc, builder.bitcast(value, V16I32), ones)
        loop.close(total)
        reduced = call(builder, "llvm.vector.reduce.add.v16i32", I32, [total])
        return builder.sext(reduced, I64)

    return i64(i64, i64), generate


def _flipper(count):
    """Return an intrinsic that copies *count* bytes, each xored with the same number.

    It is called as ``(source, target, flip)``, with two addresses and that number.
    """
    kind = ir.VectorType(I8, count)

    @intrinsic
    def flip_bytes(context, source, target, flip):
        def generate(lowering, builder, signature, arguments):
            source, target, flip = arguments
            mask = splat(builder, builder.trunc(flip, I8), count)
            store(builder, builder.xor(load(builder, source, kind), mask), target)
            return lowering.get_dummy_value()

        return types.void(i64, i64, i64), generate

    return flip_bytes


flip_64, flip_16, flip_8, flip_4, flip_1 = map(_flipper, (64, 16, 8, 4, 1))
