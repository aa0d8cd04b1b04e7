"""Micro-kernels of 8-bit products: dot products into accumulators, accumulators into bytes.

Accumulators pass through a little memory between the two, which costs nothing beside arithmetic
and leaves one form of each instead of one for every combination.
"""
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc"

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.blocks.conv_int8 import HEADER, HEADER_BYTES
from delegraph_numba_cpu.kernels import dot_ir
from delegraph_numba_cpu.kernels.dot_ir import V16F32, V16F64, V16I8, V16I32, clamped, constant, dot
from delegraph_numba_cpu.kernels.machine import I8, I32, I64, call
from delegraph_numba_cpu.kernels.registry import level
from delegraph_numba_cpu.kernels.vector_ir import (
    Loop,
    first_lanes,
    integer,
    load,
    masked_load,
    masked_store,
    multiply_add,
    splat,
    store,
)

_SIZES = {
    "avx512_vnni": ((7, 2), (14, 1), (1, 4), 4),
    "avx2": ((4, 1), (4, 1), (1, 2), 2),
    "generic": ((2, 1), (2, 1), (1, 2), 2),
}
(WIDE_ROWS, WIDE), (NARROW_ROWS, _), (_, SINGLE), TAP_PIXELS = _SIZES[level().name]
"""Rows and blocks of 16 columns that registers hold: with several blocks, with one, of one row."""

i64 = types.int64


def _dot_tile(rows, blocks):
    """Return an intrinsic that multiplies *rows* rows with *blocks* times 16 columns."""

    @intrinsic
    def dot_tile(context, a, row_bytes, weights, block_bytes, steps, headers, sums, acc):
        """Store bias + a @ weights (+ the row's sum) as ``[rows, blocks, 16], int32``."""

        def generate(lowering, builder, signature, arguments):
            a, row_bytes, weights, block_bytes, steps, headers, sums, acc = arguments
            rows_at = [builder.add(a, builder.mul(row_bytes, integer(m))) for m in range(rows)]
            blocks_at = [
                builder.add(weights, builder.mul(block_bytes, integer(n))) for n in range(blocks)
            ]
            biases = [
                load(builder, builder.add(headers, integer(n * HEADER_BYTES)), V16I32)
                for n in range(blocks)
            ]
            starts = []
            for m in range(rows):
                total = load(builder, builder.add(sums, integer(4 * m)), I32)
                starts.append(splat(builder, total, 16))
            loop = Loop(builder, steps)
            carried = [[loop.carried(bias) for bias in biases] for _ in range(rows)]
            at = builder.shl(loop.index, integer(6))
            prepared = [
                dot_ir.prepare_weights(builder, load(builder, builder.add(block, at), V16I32))
                for block in blocks_at
            ]
            at = builder.shl(loop.index, integer(2))
            found = []
            for row, values in zip(rows_at, carried, strict=True):
                four = load(builder, builder.add(row, at), I32)
                found.append(
                    [dot(builder, v, four, w) for v, w in zip(values, prepared, strict=True)]
                )
            loop.close(*(value for values in found for value in values))
            for m, values in enumerate(found):
                for n, value in enumerate(values):
                    place = builder.add(acc, integer(64 * (m * blocks + n)))
                    store(builder, builder.add(value, starts[m]), place)
            return lowering.get_dummy_value()

        return types.void(i64, i64, i64, i64, i64, i64, i64, i64), generate

    return dot_tile


dot_wide = _dot_tile(WIDE_ROWS, WIDE)
dot_narrow = dot_wide if (NARROW_ROWS, 1) == (WIDE_ROWS, WIDE) else _dot_tile(NARROW_ROWS, 1)
dot_single = _dot_tile(1, SINGLE)


def _dot_taps(pixels):
    """Return an intrinsic for *pixels* neighbouring outputs of a depthwise convolution."""

    @intrinsic
    def dot_taps(context, line, pixel_bytes, weights, offsets, count, header, acc):
        """Store bias + the sums of taps as ``[pixels, 16], int32``."""

        def generate(lowering, builder, signature, arguments):
            line, pixel_bytes, weights, offsets, count, header, acc = arguments
            bias = load(builder, header, V16I32)
            pixels_at = [builder.mul(pixel_bytes, integer(i)) for i in range(pixels)]
            loop = Loop(builder, count)
            carried = [loop.carried(bias) for _ in range(pixels)]
            at = builder.add(weights, builder.shl(loop.index, integer(6)))
            prepared = dot_ir.prepare_weights(builder, load(builder, at, V16I32))
            offset = load(builder, builder.add(offsets, builder.shl(loop.index, integer(3))), I64)
            start = builder.add(line, offset)
            found = [
                dot(builder, value, load(builder, builder.add(start, pixel), V16I32), prepared)
                for value, pixel in zip(carried, pixels_at, strict=True)
            ]
            loop.close(*found)
            for i, value in enumerate(found):
                store(builder, value, builder.add(acc, integer(64 * i)))
            return lowering.get_dummy_value()

        return types.void(i64, i64, i64, i64, i64, i64, i64), generate

    return dot_taps


dot_taps = _dot_taps(TAP_PIXELS)
dot_tap = _dot_taps(1)


def _part(builder, header, name, kind):
    return load(builder, builder.add(header, integer(HEADER[name])), kind)


def _nearest(builder, acc, header):
    real = builder.sitofp(acc, V16F32)
    scale, offset = (_part(builder, header, name, V16F32) for name in ("scale", "offset"))
    return dot_ir.rounded_to_even(builder, multiply_add(builder, real, scale, offset))


def _rounded(builder, arguments, header):
    """Return floor(x * factor + offset), with one rounding before the floor, plus zero point."""
    value = dot_ir.rounded_down(builder, call(builder, "llvm.fma.v16f64", V16F64, arguments))
    return builder.add(value, _part(builder, header, "zero", V16I32))


def _exact(builder, acc, header):
    real = builder.sitofp(acc, V16F64)
    factor, offset = (_part(builder, header, name, V16F64) for name in ("factor", "exact_offset"))
    return _rounded(builder, [real, factor, offset], header)


def _exact_away(builder, acc, header):
    real = builder.sitofp(acc, V16F64)
    names = ("factor", "exact_offset", "away")
    factor, offset, away = (_part(builder, header, name, V16F64) for name in names)
    negative = builder.icmp_signed("<", acc, constant(0))
    offset = builder.select(negative, builder.fsub(offset, away), offset)
    return _rounded(builder, [real, factor, offset], header)


def _finisher(rescale):
    """Return an intrinsic that makes bytes of 16 accumulators."""

    @intrinsic
    def finish(context, acc, header, target, count, low, high):
        """Store the first *count* of 16 results, clamped."""

        def generate(lowering, builder, signature, arguments):
            acc, header, target, count, low, high = arguments
            value = rescale(builder, load(builder, acc, V16I32), header)
            stored = builder.trunc(clamped(builder, value, low, high), V16I8)
            with builder.if_else(builder.icmp_signed(">=", count, integer(16))) as (whole, part):
                with whole:
                    store(builder, stored, target)
                with part:
                    masked_store(builder, stored, target, first_lanes(builder, count, 16))
            return lowering.get_dummy_value()

        return types.void(i64, i64, i64, i64, i64, i64), generate

    return finish


finish_nearest, finish_exact, finish_exact_away = map(_finisher, (_nearest, _exact, _exact_away))


@intrinsic
def pack_column(context, a, b, c, d, count, flip, target):
    """Store 16 dwords of the bytes below each other at four addresses, for *count* channels."""

    def generate(lowering, builder, signature, arguments):
        *rows, count, flip, target = arguments
        whole = builder.icmp_signed(">=", count, integer(16))
        function = builder.function
        plain, masked, after = (function.append_basic_block(n) for n in ("plain", "part", "then"))
        builder.cbranch(whole, plain, masked)
        builder.position_at_end(plain)
        loaded = [load(builder, row, V16I8) for row in rows]
        builder.branch(after)
        builder.position_at_end(masked)
        mask = first_lanes(builder, count, 16)
        some = [masked_load(builder, row, mask, V16I8) for row in rows]
        builder.branch(after)
        builder.position_at_end(after)
        packed = None
        for i, (full, part) in enumerate(zip(loaded, some, strict=True)):
            byte = builder.phi(V16I8)
            byte.add_incoming(full, plain)
            byte.add_incoming(part, masked)
            rows[i] = byte
        for i, byte in enumerate(rows):
            wide = builder.zext(byte, V16I32)
            shifted = builder.shl(wide, constant(8 * i)) if i else wide
            packed = shifted if packed is None else builder.or_(packed, shifted)
        turned = builder.xor(packed, splat(builder, builder.trunc(flip, I32), 16))
        store(builder, turned, target)
        return lowering.get_dummy_value()

    return types.void(i64, i64, i64, i64, i64, i64, i64), generate


@intrinsic
def fill_dwords(context, target, value):
    """Store 16 copies of the low half of an int64."""

    def generate(lowering, builder, signature, arguments):
        target, value = arguments
        store(builder, splat(builder, builder.trunc(value, I32), 16), target)
        return lowering.get_dummy_value()

    return types.void(i64, i64), generate


def _flipper(count):
    """Return an intrinsic that copies *count* bytes, each xored with the same byte."""
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
