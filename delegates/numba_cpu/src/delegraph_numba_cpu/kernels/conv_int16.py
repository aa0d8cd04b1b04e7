"""Convolutions and matrix products of 16-bit activations and 8-bit weights."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen.intrinsics import F64, I16, I32, I64, call, copy_bytes, jit, word
from delegraph_numba_cpu.codegen.lanes import Lanes
from delegraph_numba_cpu.codegen.registry import kernel, level
from delegraph_numba_cpu.codegen.vector_ir import Loop, integer, load, splat, store, vector
from delegraph_numba_cpu.instructions import conv_int16 as instructions
from delegraph_numba_cpu.kernels.conv_int8_pixels import gather_pixels
from delegraph_numba_cpu.kernels.conv_int8_windows import ROW_BYTES

LANES, ROWS, HEADER = instructions.LANES, instructions.ROWS, instructions.HEADER
V16I16, V32I16, V16I32, V16I64 = (
    vector(I16, LANES), vector(I16, 2 * LANES), vector(I32, LANES), vector(I64, LANES)
)  # fmt: skip

(
    X, Y, WINDOWS, WEIGHTS, HEADERS, OUTPUTS, PIXELS, STEP, LOW, HIGH, ROUNDING, TILES, SCRATCH,
    SCRATCH_BYTES, DEPTH,
) = instructions.CONVOLVE.slots(*instructions.CONVOLVE.names)  # fmt: skip
assert instructions.DEPTHWISE.slots(*instructions.DEPTHWISE.names) == tuple(range(DEPTH + 1))

_MADD = {64: "llvm.x86.avx512.pmaddw.d.512", 32: "llvm.x86.avx2.pmadd.wd"}.get(level().vector_bytes)
"""LLVM's intrinsic that multiplies int16 and adds adjacent products; None if there is none."""


def _add_pairs(builder: Any, a: Any, b: Any) -> Any:
    """Return 16 int32: the products of the vectors *a* and *b*, of 32 int16, added in pairs."""
    if _MADD is None or level().machine != "x86_64":
        wide = [builder.sext(each, vector(I32, 2 * LANES)) for each in (a, b)]
        products = builder.mul(*wide)
        halves = [
            builder.shuffle_vector(
                products, products, ir.Constant(V16I32, list(range(first, 2 * LANES, 2)))
            )
            for first in (0, 1)
        ]
        return builder.add(*halves)
    count = level().vector_bytes // 2
    parts = []
    for start in range(0, 2 * LANES, count):
        lanes = ir.Constant(vector(I32, count), list(range(start, start + count)))
        operands = [builder.shuffle_vector(each, each, lanes) for each in (a, b)]
        parts.append(call(builder, _MADD, vector(I32, count // 2), operands))
    if len(parts) == 1:
        return parts[0]
    return builder.shuffle_vector(*parts, ir.Constant(V16I32, list(range(LANES))))


@intrinsic
def dot_rows(
    context: Any, rows: Any, row_bytes: Any, weights: Any, pairs: Any, is_first: Any, sums: Any
) -> Any:
    """Add the products of ROWS windows and the weights of 16 outputs to int64 ``[ROWS, 16]``.

    Args:
        context: the typing context of Numba.
        rows: address of the first window.
        row_bytes: bytes from one window to the next.
        weights: address of the weights of 16 outputs, ``[pairs, 16, 2], int16``.
        pairs: number of pairs of adjacent int16 of a window, from 1 to ``PAIRS_A_CHUNK``.
        is_first: whether the sums start from zero.
        sums: address of the sums.
    """

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows, row_bytes, weights, pairs, is_first, sums = arguments
        places = [builder.add(rows, builder.mul(row_bytes, integer(m))) for m in range(ROWS)]
        zero = ir.Constant(V16I32, [0] * LANES)
        loop = Loop(builder, pairs)
        found = [loop.carried(zero) for _ in range(ROWS)]
        offset = builder.shl(loop.index, integer(6))
        weight = load(builder, builder.add(weights, offset), V32I16)
        offset = builder.shl(loop.index, integer(2))
        for m, place in enumerate(places):
            pair = splat(builder, load(builder, builder.add(place, offset), I32), LANES)
            products = _add_pairs(builder, builder.bitcast(pair, V32I16), weight)
            found[m] = builder.add(found[m], products)
        loop.close(*found)
        begins = splat(builder, builder.icmp_signed("!=", is_first, integer(0)), LANES)
        for m, value in enumerate(found):
            place = builder.add(sums, integer(8 * LANES * m))
            before = load(builder, place, V16I64)
            before = builder.select(begins, ir.Constant(V16I64, [0] * LANES), before)
            store(builder, builder.add(before, builder.sext(value, V16I64)), place)
        return target.get_dummy_value()

    return types.void(*[types.int64] * 6), generate


@intrinsic
def dot_channels(
    context: Any, window: Any, tap_bytes: Any, weights: Any, taps: Any, sums: Any
) -> Any:
    """Store 16 sums, int64: each channel's taps of one window times the weights of that channel.

    Args:
        context: the typing context of Numba.
        window: address of the first channel of the first tap.
        tap_bytes: bytes from one tap to the next.
        weights: address of the weights of 16 channels, ``[taps, 16], int16``.
        taps: number of taps, at least 1.
        sums: address of the sums.
    """

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        window, tap_bytes, weights, taps, sums = arguments
        loop = Loop(builder, taps)
        found = loop.carried(ir.Constant(V16I32, [0] * LANES))
        place = builder.add(window, builder.mul(loop.index, tap_bytes))
        x = builder.sext(load(builder, place, V16I16), V16I32)
        place = builder.add(weights, builder.shl(loop.index, integer(5)))
        weight = builder.sext(load(builder, place, V16I16), V16I32)
        found = builder.add(found, builder.mul(x, weight))
        loop.close(found)
        store(builder, builder.sext(found, V16I64), sums)
        return target.get_dummy_value()

    return types.void(*[types.int64] * 5), generate


def _finisher(rounding: int) -> Any:
    """Return ``finish(sums, header, target, low, high)``, which converts 16 int64 sums to int16.

    The first three arguments are addresses; the header has the scaling of these outputs. Results
    are clamped to *low* and *high*. *rounding* is ``instructions.FIXED_POINT`` or ``REAL``.
    """

    @intrinsic
    def finish(context: Any, sums: Any, header: Any, target: Any, low: Any, high: Any) -> Any:
        def generate(lowering: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            sums, header, target, *limits = arguments

            def field(name: str, kind: Any = V16I64) -> Lanes:
                place = builder.add(header, integer(HEADER[name]))
                return Lanes(builder, load(builder, place, kind))

            low, high = (Lanes(builder, splat(builder, limit, LANES)) for limit in limits)
            total = Lanes(builder, load(builder, sums, V16I64)) + field("bias")
            if rounding == instructions.REAL:
                real = total.to_float(F64) * field("multiplier", vector(F64, LANES))
                found = _nearest(real)
            else:
                found = _shifted(total * field("multiplier"), field("first"))
                found = _shifted(found, field("second"))
            store(builder, found.at_least(low).at_most(high).narrow(I16).value, target)
            return lowering.get_dummy_value()

        return types.void(*[types.int64] * 5), generate

    return finish


def _shifted(x: Lanes, bits: Lanes) -> Lanes:
    """Return int64 divided by ``2**bits``, rounded to nearest, halves up."""
    return (x + ((x.filled(1) << bits) >> 1)) >> bits


def _nearest(real: Lanes) -> Lanes:
    """Return float64 rounded to int64, halves away from zero; values are first clamped to ±1e9."""
    real = real.at_least(-1e9).at_most(1e9)
    whole = real.to_integer(I32)
    rest = real - whole.to_float(F64)
    up = (rest >= 0.5).choose(whole.filled(1), 0)
    down = (rest > -0.5).choose(whole.filled(0), 1)
    return (whole + up - down).widen(I64, signed=True)


finish = _finisher(instructions.FIXED_POINT)
finish_real = _finisher(instructions.REAL)


@jit
def store_results(record, sums, rows, column, target):
    """Convert sums of products to int16, and store the results of up to 16 outputs.

    Args:
        record: address of the kernel call's operands.
        sums: address of the sums, int64.
        rows: number of windows that have sums.
        column: number of the first output.
        target: address of the first window's result of this output.
    """
    header = word(record, HEADERS) + column // LANES * instructions.HEADER_BYTES
    rounding, low, high = word(record, ROUNDING), word(record, LOW), word(record, HIGH)
    outputs, row = word(record, OUTPUTS), sums + instructions.SUMS_BYTES
    for _ in range(rows):
        if rounding == instructions.REAL:
            finish_real(sums, header, row, low, high)
        else:
            finish(sums, header, row, low, high)
        copy_bytes(target + 2 * column, row, 2 * min(outputs - column, LANES))
        sums += 8 * LANES
        target += 2 * outputs


@kernel(instructions.CONVOLVE)
def convolve_int16(record, tile, worker):
    """Compute all outputs of this tile's pixels.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    pixels, tiles, step = word(record, PIXELS), word(record, TILES), word(record, STEP)
    sums = word(record, SCRATCH) + worker * word(record, SCRATCH_BYTES)
    windows, outputs = sums + instructions.ACC_BYTES, word(record, OUTPUTS)
    row_bytes = word(word(record, WINDOWS), ROW_BYTES)
    first, last = pixels * tile // tiles, pixels * (tile + 1) // tiles
    while first < last:
        count = min(step, last - first)
        gather_pixels(word(record, X), word(record, WINDOWS), first, count, windows, 0)
        target = word(record, Y) + 2 * first * outputs
        for column in range(0, outputs, LANES):
            for m in range(0, count, ROWS):
                dot_windows(record, windows + m * row_bytes, row_bytes, column, sums)
                place = target + 2 * m * outputs
                store_results(record, sums, min(ROWS, count - m), column, place)
        first += count


@jit
def dot_windows(record, rows, row_bytes, column, sums):
    """Store the sums of products of ROWS windows and the weights of 16 outputs.

    Args:
        record: address of the kernel call's operands.
        rows: address of the first window.
        row_bytes: bytes from one window to the next.
        column: number of the first output.
        sums: address of the sums, int64.
    """
    pairs = word(record, DEPTH)
    weights = word(record, WEIGHTS) + column * 4 * pairs
    for k in range(0, pairs, instructions.PAIRS_A_CHUNK):
        count = min(pairs - k, instructions.PAIRS_A_CHUNK)
        dot_rows(rows + 4 * k, row_bytes, weights + 64 * k, count, int(k == 0), sums)


@kernel(instructions.DEPTHWISE)
def depthwise_int16(record, tile, worker):
    """Compute all channels of this tile's pixels.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    pixels, tiles, step = word(record, PIXELS), word(record, TILES), word(record, STEP)
    sums = word(record, SCRATCH) + worker * word(record, SCRATCH_BYTES)
    windows, outputs, taps = (
        sums + instructions.ACC_BYTES,
        word(record, OUTPUTS),
        word(record, DEPTH),
    )
    row_bytes = word(word(record, WINDOWS), ROW_BYTES)
    first, last = pixels * tile // tiles, pixels * (tile + 1) // tiles
    while first < last:
        count = min(step, last - first)
        gather_pixels(word(record, X), word(record, WINDOWS), first, count, windows, 0)
        for column in range(0, outputs, LANES):
            weights = word(record, WEIGHTS) + column * 2 * taps
            target = word(record, Y) + 2 * first * outputs
            for m in range(count):
                window = windows + m * row_bytes + 2 * column
                dot_channels(window, 2 * outputs, weights, taps, sums)
                store_results(record, sums, 1, column, target + 2 * m * outputs)
        first += count
