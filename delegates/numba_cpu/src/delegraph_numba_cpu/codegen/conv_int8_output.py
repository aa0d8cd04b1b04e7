"""Conversion of accumulators of 8-bit products to bytes: scaling, rounding, clamping, stores."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen import dot_products
from delegraph_numba_cpu.codegen.dot_products import (
    GROUP,
    V16F32,
    V16F64,
    V16I32,
    constant,
)
from delegraph_numba_cpu.codegen.intrinsics import I8, I16, I64, call
from delegraph_numba_cpu.codegen.vector_ir import (
    Loop,
    integer,
    load,
    merged,
    multiply_add,
    splat,
    store,
    store_first,
    vector,
)
from delegraph_numba_cpu.instructions.conv_int8 import (
    FRACTION,
    FRACTION_BITS,
    HEADER,
    HEADER_BYTES,
    UNCERTAIN,
)

ROWS = 4
"""Number of rows of 16 results that are converted together, with one load of the header."""

i64 = types.int64


def _parts(builder, header, names):
    """Return the named fields of a header, each as a vector of 16 values."""
    kinds = {"scale": V16F32, "offset": V16F32, "below": V16F32, "zero": V16I32}
    places = (builder.add(header, integer(HEADER[name])) for name in names)
    return [
        load(builder, place, kinds.get(name, V16F64))
        for name, place in zip(names, places, strict=True)
    ]


def _nearest(builder, acc, scale, offset):
    real = builder.sitofp(acc, V16F32)
    return dot_products.rounded_to_even(builder, multiply_add(builder, real, scale, offset))


def _exact(builder, acc, factor, offset, zero):
    """Return int32 ``floor(acc * factor + offset) + zero``.

    Only one rounding precedes the floor.
    """
    arguments = [builder.sitofp(acc, V16F64), factor, offset]
    value = dot_products.rounded_down(builder, call(builder, "llvm.fma.v16f64", V16F64, arguments))
    return builder.add(value, zero)


def _away_offset(builder, acc, offset, away):
    negative = builder.icmp_signed("<", acc, constant(0))
    return builder.select(negative, builder.fsub(offset, away), offset)


def _exact_away(builder, acc, factor, offset, zero, away):
    offset = _away_offset(builder, acc, offset, away)
    return _exact(builder, acc, factor, offset, zero)


def _exact_close(builder, acc, factor, offset, zero, away):
    """Return the result of :func:`_exact_away` for products that need more bits than float64 has.

    Rounding before the floor may raise a value to the next integer, but no further. The difference
    from that integer has few bits, so it is exact; it is negative if the value was raised.
    """
    offset = _away_offset(builder, acc, offset, away)
    found = _exact(builder, acc, factor, offset, constant(0))
    offset = builder.fsub(offset, builder.sitofp(found, V16F64))
    arguments = [builder.sitofp(acc, V16F64), factor, offset]
    left = call(builder, "llvm.fma.v16f64", V16F64, arguments)
    is_lifted = builder.fcmp_ordered("<", left, constant(0.0, V16F64))
    found = builder.add(found, builder.sext(is_lifted, V16I32))
    return builder.add(found, zero)


def _all_of(rescale, *names):
    """Return a function that prepares the rescaling of accumulators by fields of headers.

    The function is ``prepare(builder, headers)``. It loads the fields, and returns a function that
    rescales one vector of accumulators by each header.

    Args:
        rescale: function that rescales a vector; it gets the builder, the vector and the fields.
        names: names of the fields.
    """

    def prepare(builder, headers):
        parts = [_parts(builder, header, names) for header in headers]

        def rescale_all(vectors):
            return [rescale(builder, *each) for each in _with(vectors, parts)]

        return rescale_all

    return prepare


_NEAREST = _all_of(_nearest, "scale", "offset")
_EXACT = _all_of(_exact, "factor", "exact_offset", "zero")
_EXACT_AWAY = _all_of(_exact_away, "factor", "exact_offset", "zero", "away")
_EXACT_CLOSE = _all_of(_exact_close, "factor", "exact_offset", "zero", "away")


def _quickly(quick, exact):
    """Return a ``prepare`` function that rescales in float32 where the result is certainly right.

    Elsewhere it rescales in float64. For ``prepare`` see :func:`_all_of`.

    Args:
        quick: function ``prepare`` whose result also returns a mask of 16 lanes, after the rescaled
            vectors: the lanes in which a vector may be wrong.
        exact: the ``prepare`` that rescales in float64.
    """

    def prepare(builder, headers):
        rescale = quick(builder, headers)

        def rescale_all(vectors):
            found, doubts = rescale(vectors)
            before = builder.block
            is_any = builder.icmp_signed("!=", builder.bitcast(doubts, I16), ir.Constant(I16, 0))
            with builder.if_then(is_any, likely=False):
                slow = exact(builder, headers)(vectors)
                inside = builder.block
            return [
                merged(builder, (fast, before), (right, inside))
                for fast, right in zip(found, slow, strict=True)
            ]

        return rescale_all

    return prepare if dot_products.ROUNDS_QUICKLY else exact


def _by_fraction(builder, headers):
    """Return a function that rescales by headers of the rounding ``EXACT``, in float32.

    It computes int32 with 16 bits after the point, and returns their floors and a mask of doubtful
    lanes. Because of the offset, a result exceeds the right value by less than ``UNCERTAIN``. So
    the floor is right if the fraction is at least ``UNCERTAIN``. Values that do not fit int32
    become the least int32, whose fraction is 0.
    """
    parts = [_parts(builder, header, ("scale", "offset")) for header in headers]
    words = vector(I16, 32)

    def rescale_all(vectors):
        fixed = [_nearest(builder, *each) for each in _with(vectors, parts)]
        least, *others = [builder.bitcast(each, words) for each in fixed]
        for other in others:
            least = call(builder, "llvm.umin.v32i16", words, [least, other])
        fraction = builder.and_(builder.bitcast(least, V16I32), constant(FRACTION - 1))
        doubts = builder.icmp_signed("<", fraction, constant(UNCERTAIN))
        return [builder.ashr(each, constant(FRACTION_BITS)) for each in fixed], doubts

    return rescale_all


def _by_two_offsets(builder, headers):
    """Return a function that rescales by headers of roundings away from zero, in float32.

    It returns the rescaled vectors and a mask of doubtful lanes. One offset makes the result too
    large, the other makes it too small. Both are 0.5 lower than a floor needs, so that rounding to
    the nearest integer gives the floor. If both give the same integer, this integer is right.
    """
    parts = [_parts(builder, header, ("scale", "offset", "below")) for header in headers]
    for part, header in zip(parts, headers, strict=True):
        part += [builder.fptrunc(x, V16F32) for x in _parts(builder, header, ("away",))]

    def rescale_all(vectors):
        # No difference is negative, so none cancels another.
        found, difference = [], constant(0)
        for acc, scale, *offsets, away in _with(vectors, parts):
            more, less = (
                _nearest(builder, acc, scale, _away_offset(builder, acc, offset, away))
                for offset in offsets
            )
            found.append(more)
            difference = builder.add(difference, builder.sub(more, less))
        return found, builder.icmp_signed("!=", difference, constant(0))

    return rescale_all


def _with(vectors, parts):
    """Return each vector together with the fields of its header."""
    return [(each, *part) for each, part in zip(vectors, parts, strict=True)]


def _finisher(prepare):
    """Return an intrinsic that converts accumulators to bytes.

    *prepare* is a function that prepares the rescaling, from :func:`_all_of`.
    """

    @intrinsic
    def finish(context, acc, acc_bytes, rows, header, target, row_bytes, count, low, high):
        """Convert the first *count* of the 16 int32 sums of each row to bytes at *target*.

        There is at least one row. Rows of sums begin at the address *acc*, *acc_bytes* apart; rows
        of bytes begin at the address *target*, *row_bytes* apart. *header* is the address of the 16
        outputs' header, with the numbers that rescale sums; see ``instructions.conv_int8.HEADER``.

        Results are clamped to *low* and *high*, which are the limits of int8 or uint8 results.
        """

        def generate(lowering, builder, signature, arguments):
            acc, acc_bytes, rows, header, target, row_bytes, count, low, high = arguments

            def rows_by(size, write):
                """Append a loop that converts *size* rows at a time.

                ``write(bytes, place)`` appends the store of a row's 16 bytes at an address. The
                last rows may be converted twice.
                """
                rescale_all = prepare(builder, [header] * size)
                last = builder.sub(rows, integer(size))
                loop = Loop(builder, rows, size)
                first = call(builder, "llvm.smin.i64", I64, [loop.index, last])
                source = builder.add(acc, builder.mul(first, acc_bytes))
                place = builder.add(target, builder.mul(first, row_bytes))
                vectors = []
                for _ in range(size):
                    vectors.append(load(builder, source, V16I32))
                    source = builder.add(source, acc_bytes)
                for row in dot_products.narrowed(builder, rescale_all(vectors), low, high):
                    write(row, place)
                    place = builder.add(place, row_bytes)
                loop.close()

            def store_row(value, place):
                store(builder, value, place)

            def store_some(value, place):
                store_first(builder, value, place, count)

            are_many = builder.icmp_signed(">=", rows, integer(ROWS))
            are_whole = builder.icmp_signed(">=", count, integer(16))
            with builder.if_else(are_many) as (many, few):
                for branch, size in ((many, ROWS), (few, 1)):
                    with branch, builder.if_else(are_whole) as (whole, part):
                        with whole:
                            rows_by(size, store_row)
                        with part:
                            rows_by(size, store_some)
            return lowering.get_dummy_value()

        return types.void(*[i64] * 9), generate

    return finish


def _finisher_64(prepare):
    """Return an intrinsic that converts accumulators of 64 outputs at a time to bytes.

    The accumulators are interleaved, in the order of ``dot_products.zipped``. *prepare*, made by
    :func:`_all_of`, loads multipliers and shifts, and returns the function that rescales.
    """

    @intrinsic
    def finish_64(context, acc, rows, header, target, row_bytes, flip, low, high):
        """Convert the 64 int32 sums of each row to bytes, and store these at *target*.

        There is at least one row. Rows of sums follow one another from the address *acc* on; rows
        of bytes begin at the address *target*, *row_bytes* apart. *header* is the address of four
        headers, each for 16 outputs. They have the numbers that rescale the sums; see
        ``instructions.conv_int8.HEADER``.

        Results are clamped, as unsigned bytes, to *low* and *high*. They are then xored with
        *flip*, which is 128 if int8 are stored, otherwise 0.
        """

        def generate(lowering, builder, signature, arguments):
            acc, rows, header, target, row_bytes, flip, low, high = arguments
            headers = [builder.add(header, integer(v * HEADER_BYTES)) for v in range(GROUP)]
            rescale_all = prepare(builder, headers)
            mask = splat(builder, builder.trunc(flip, I8), 64)
            loop = Loop(builder, rows)
            source, place = loop.carried(acc), loop.carried(target)
            vectors = [
                load(builder, builder.add(source, integer(64 * v)), V16I32) for v in range(GROUP)
            ]
            values = rescale_all(vectors)
            found = dot_products.unzipped(builder, values, low, high)
            store(builder, builder.xor(found, mask), place)
            following = builder.add(source, integer(64 * GROUP))
            loop.close(following, builder.add(place, row_bytes))
            return lowering.get_dummy_value()

        return types.void(*[i64] * 8), generate

    return finish_64


_ALL = (
    _NEAREST,
    _quickly(_by_fraction, _EXACT),
    _quickly(_by_two_offsets, _EXACT_AWAY),
    _quickly(_by_two_offsets, _EXACT_CLOSE),
)
finish_nearest, finish_exact, finish_exact_away, finish_exact_close = map(_finisher, _ALL)
finish_nearest_64, finish_exact_64, finish_exact_away_64, finish_exact_close_64 = map(
    _finisher_64, _ALL
)
