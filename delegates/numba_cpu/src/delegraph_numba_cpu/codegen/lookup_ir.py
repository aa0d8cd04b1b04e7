"""Micro-kernels that convert tables of integers (8 or 4 bits) to float32."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen.intrinsics import F32, I8, I16, I32
from delegraph_numba_cpu.codegen.vector_ir import (
    Loop,
    first_lanes,
    integer,
    load,
    load_first,
    masked_store,
    splat,
    store,
    vector,
    widened_halves,
)

i64, f32 = types.int64, types.float32

LANES = 16
"""Number of bytes of the table that are converted together."""

V16I8, V16I32, V16F32 = vector(I8, LANES), vector(I32, LANES), vector(F32, LANES)


@intrinsic
def load_f16(context, address):
    """Return the finite float16 at an address as float32."""

    def generate(lowering, builder, signature, arguments):
        one = load(builder, arguments[0], vector(I16, 1))
        return builder.extract_element(widened_halves(builder, one), ir.Constant(I32, 0))

    return f32(i64), generate


def _bytes(builder, values):
    """Return a list with the vector *values*: 16 bytes, each of which is one signed integer."""
    return [values]


def _nibbles(builder, values):
    """Return the 32 signed integers in 16 bytes, as a list of two vectors of 16 bytes.

    Each byte has two of them, the first in its low half.
    """
    four = ir.Constant(V16I8, [4] * LANES)
    low = builder.ashr(builder.shl(values, four), four)
    high = builder.ashr(values, four)
    order = [LANES * (i % 2) + i // 2 for i in range(2 * LANES)]
    return [
        builder.shuffle_vector(low, high, ir.Constant(V16I32, part))
        for part in (order[:LANES], order[LANES:])
    ]


def _converter(split, per_byte):
    """Return an intrinsic that converts integers to float32; a byte holds *per_byte* of them.

    *split* is the function that gets the integers from 16 bytes, :func:`_bytes` or
    :func:`_nibbles`.
    """

    @intrinsic
    def convert(context, source, count, scale, target):
        """Convert *count* > 0 integers to float32, times *scale*, and store them at *target*.

        *source* is the address of the integers, and *target* that of the results.
        """

        def generate(lowering, builder, signature, arguments):
            source, count, scale, target = arguments
            factor = splat(builder, scale, LANES)
            end = builder.sdiv(builder.add(count, integer(per_byte - 1)), integer(per_byte))
            loop = Loop(builder, end, LANES)
            place = builder.add(source, loop.index)
            left = builder.sub(count, builder.mul(loop.index, integer(per_byte)))
            result = builder.add(target, builder.mul(loop.index, integer(4 * per_byte)))

            def floats(values):
                for part in split(builder, values):
                    whole = builder.sitofp(builder.sext(part, V16I32), V16F32)
                    yield builder.fmul(whole, factor)

            is_whole = builder.icmp_signed(">=", left, integer(LANES * per_byte))
            with builder.if_else(is_whole) as (whole, part):
                with whole:
                    for i, each in enumerate(floats(load(builder, place, V16I8))):
                        store(builder, each, builder.add(result, integer(4 * LANES * i)))
                with part:
                    some = load_first(builder, place, builder.sub(end, loop.index), V16I8)
                    for i, each in enumerate(floats(some)):
                        mask = first_lanes(builder, builder.sub(left, integer(LANES * i)), LANES)
                        at = builder.add(result, integer(4 * LANES * i))
                        masked_store(builder, each, at, mask)
            loop.close()
            return lowering.get_dummy_value()

        return types.void(i64, i64, f32, i64), generate

    return convert


convert_bytes, convert_nibbles = _converter(_bytes, 1), _converter(_nibbles, 2)
