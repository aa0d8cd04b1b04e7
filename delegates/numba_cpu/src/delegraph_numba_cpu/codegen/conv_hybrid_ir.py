"""Micro-kernels of hybrid products: floats to quantised values, and accumulators to floats."""

from __future__ import annotations

import functools

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen.dot_products import V16F32, V16I8, V16I32, constant
from delegraph_numba_cpu.codegen.intrinsics import F32, I32
from delegraph_numba_cpu.codegen.vector_ir import (
    Loop,
    clamp,
    first_lanes,
    integer,
    load,
    masked_load,
    masked_store,
    multiply_add,
    repeated,
    splat,
    store,
)
from delegraph_numba_cpu.instructions.conv_hybrid import HEADER

i64, f32 = types.int64, types.float32

VECTORS = 4
"""Number of vectors of 16 activations that a step of a loop computes, to hide latencies."""

BELOW_HALF = 0.5 - 2.0**-25
"""Largest float32 below 0.5; added before truncation, it rounds to the nearest, halves up."""


def _smaller(builder, x, y):
    return builder.select(builder.fcmp_ordered("<", x, y), x, y)


def _larger(builder, x, y):
    return builder.select(builder.fcmp_ordered(">", x, y), x, y)


def _sum(builder, x, y):
    return builder.fadd(x, y)


def _folded(builder, x, combine):
    """Return one number: all 16 elements of *x* combined, half with half, again and again.

    *combine* is a function of the builder and two vectors, such as :func:`_larger`.
    """
    for count in (8, 4, 2, 1):
        lanes = [(lane + count) % 16 for lane in range(16)]
        turned = builder.shuffle_vector(x, x, ir.Constant(V16I32, lanes))
        x = combine(builder, x, turned)
    return builder.extract_element(x, ir.Constant(I32, 0))


def _places(builder, base, index, vectors, itemsize):
    """Return the addresses of *vectors* vectors of 16 elements each, from element *index* on.

    *base* is the address of element 0; an element has *itemsize* bytes.
    """
    first = builder.add(base, builder.mul(index, integer(itemsize)))
    return [builder.add(first, integer(16 * itemsize * i)) for i in range(vectors)]


@intrinsic
def measure_floats(context, source, count, target):
    """Store two float32 at *target*: the least and the largest of *count* floats and 0.

    Both are NaN if any of the floats is not finite.
    """

    def generate(lowering, builder, signature, arguments):
        source, count, target = arguments
        zero = constant(0.0, V16F32)

        def measured(x, low, high, unsound):
            unsound = builder.fadd(unsound, builder.fmul(x, zero))
            return [_smaller(builder, x, low), _larger(builder, x, high), unsound]

        def measure_vectors(index, values):
            """Append code that measures vectors of floats; return the next values, three for each.

            These are the least and the largest floats so far, and NaN or 0: NaN if any of the
            floats was not finite. *index* is the number of the first float.
            """
            places, found = _places(builder, source, index, len(values) // 3, 4), []
            for i, place in enumerate(places):
                found += measured(load(builder, place, V16F32), *values[3 * i : 3 * i + 3])
            return found

        index, found = repeated(
            builder, integer(0), count, 16 * VECTORS, [zero] * 3 * VECTORS, measure_vectors
        )
        combined = [
            functools.reduce(functools.partial(combine, builder), found[i::3])
            for i, combine in enumerate((_smaller, _larger, _sum))
        ]
        index, found = repeated(builder, index, count, 16, combined, measure_vectors)
        mask = first_lanes(builder, builder.sub(count, index), 16)
        (place,) = _places(builder, source, index, 1, 4)
        low, high, unsound = measured(masked_load(builder, place, mask, V16F32), *found)
        nothing = _folded(builder, unsound, _sum)  # 0 or NaN
        low, high = _folded(builder, low, _smaller), _folded(builder, high, _larger)
        store(builder, builder.fadd(low, nothing), target)
        store(builder, builder.fadd(high, nothing), builder.add(target, integer(4)))
        return lowering.get_dummy_value()

    return types.void(i64, i64, i64), generate


def _rounder(builder, inverse, low, high):
    """Return a function that quantises 16 float32 to int32.

    It multiplies by *inverse*, rounds halves away from zero, and clamps to *low* and *high*. These
    three are float32.
    """
    factor, lowest, highest = (splat(builder, each, 16) for each in (inverse, low, high))
    half = constant(int(np.float32(BELOW_HALF).view(np.int32)))

    def rounded(x):
        x = builder.fmul(x, factor)
        sign = builder.and_(builder.bitcast(x, V16I32), constant(-0x80000000))
        x = builder.fadd(x, builder.bitcast(builder.or_(sign, half), V16F32))
        # Truncation after the clamp gives the same result, as the bounds are integers.
        return builder.fptosi(clamp(builder, x, lowest, highest), V16I32)

    return rounded


def _convert(builder, source, count, target, width, convert):
    """Append a loop that converts *count* > 0 float32, and stores the results.

    *convert* is a function that turns a vector of 16 float32 into 16 values of *width* bytes each.
    """
    index = integer(0)
    for vectors in (VECTORS, 1):

        def convert_vectors(index, values, vectors=vectors):
            places = _places(builder, source, index, vectors, 4)
            results = _places(builder, target, index, vectors, width)
            for place, result in zip(places, results, strict=True):
                store(builder, convert(load(builder, place, V16F32)), result)
            return values

        index, _ = repeated(builder, index, count, 16 * vectors, [], convert_vectors)
    with builder.if_then(builder.icmp_signed("<", index, count)):
        mask = first_lanes(builder, builder.sub(count, index), 16)
        (place,), (result,) = (
            _places(builder, base, index, 1, size) for base, size in ((source, 4), (target, width))
        )
        masked_store(builder, convert(masked_load(builder, place, mask, V16F32)), result, mask)


@intrinsic
def quantize_floats(context, source, count, inverse, low, high, zero, target):
    """Store *count* > 0 float32 as bytes: each times *inverse*, rounded, clamped, plus *zero*.

    Halves are rounded away from zero; *low* and *high* are the limits. The values are read at the
    address *source*, and written at *target*.
    """

    def generate(lowering, builder, signature, arguments):
        source, count, inverse, low, high, zero, target = arguments
        rounded = _rounder(builder, inverse, low, high)
        offset = splat(builder, builder.trunc(zero, I32), 16)

        def convert(x):
            return builder.trunc(builder.add(rounded(x), offset), V16I8)

        _convert(builder, source, count, target, 1, convert)
        return lowering.get_dummy_value()

    return types.void(i64, i64, f32, f32, f32, i64, i64), generate


@intrinsic
def round_floats(context, source, count, inverse, low, high, scale, target):
    """Store *count* > 0 float32 as float32: times *inverse*, rounded, clamped, times *scale*.

    For the other arguments see :func:`quantize_floats`.
    """

    def generate(lowering, builder, signature, arguments):
        source, count, inverse, low, high, scale, target = arguments
        rounded = _rounder(builder, inverse, low, high)
        unit = splat(builder, scale, 16)

        def convert(x):
            return builder.fmul(builder.sitofp(rounded(x), V16F32), unit)

        _convert(builder, source, count, target, 4, convert)
        return lowering.get_dummy_value()

    return types.void(i64, i64, f32, f32, f32, f32, i64), generate


def _finisher(kind):
    """Return an intrinsic that computes float32 results from accumulators of the type *kind*."""

    @intrinsic
    def finish(
        context, acc, acc_bytes, rows, header, scales, scale_step, target, row_bytes, count, low,
        high,
    ):  # fmt: skip
        """Store the first *count* of 16 clamped results for each of *rows* >= 1 rows.

        Rows of accumulators begin at *acc*, *acc_bytes* apart, and rows of results at *target*,
        *row_bytes* apart. *header* is the address of the outputs' header; see
        ``instructions.conv_hybrid.HEADER``. Scale and zero point of the first row are at *scales*;
        those of consecutive rows are *scale_step* bytes apart.
        """

        def generate(lowering, builder, signature, arguments):
            acc, acc_bytes, rows, header, scales, scale_step, target, row_bytes, count, *limits = (
                arguments
            )
            lowest, highest = (splat(builder, each, 16) for each in limits)
            sums, factors, bias = (
                load(builder, builder.add(header, integer(HEADER[name])), each)
                for name, each in (("sum", kind), ("scale", V16F32), ("offset", V16F32))
            )
            mask = first_lanes(builder, count, 16)

            def without_zeros(source, zero):
                """Return float32 accumulators, from *source*, without the zero point's part.

                They are sums of products of a weight and the difference of activation and *zero*.
                """
                found = load(builder, source, kind)
                if kind == V16F32:
                    zeros = splat(builder, builder.sitofp(zero, F32), 16)
                    return builder.fsub(found, builder.fmul(zeros, sums))
                # Products may wrap around, but differences fit int32 and are right.
                whole = builder.sub(found, builder.mul(splat(builder, zero, 16), sums))
                return builder.sitofp(whole, V16F32)

            def each_row(write):
                loop = Loop(builder, rows)
                source, place, row = (loop.carried(each) for each in (acc, target, scales))
                scale = splat(builder, load(builder, row, F32), 16)
                zero = load(builder, builder.add(row, integer(4)), I32)
                factor = builder.fmul(factors, scale)
                value = multiply_add(builder, without_zeros(source, zero), factor, bias)
                write(clamp(builder, value, lowest, highest), place)
                loop.close(
                    builder.add(source, acc_bytes),
                    builder.add(place, row_bytes),
                    builder.add(row, scale_step),
                )

            with builder.if_else(builder.icmp_signed(">=", count, integer(16))) as (whole, part):
                with whole:
                    each_row(lambda value, place: store(builder, value, place))
                with part:
                    each_row(lambda value, place: masked_store(builder, value, place, mask))
            return lowering.get_dummy_value()

        return types.void(*[i64] * 9, f32, f32), generate

    return finish


finish_floats, finish_parts = _finisher(V16I32), _finisher(V16F32)
