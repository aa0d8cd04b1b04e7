"""SVDF layers: the kernels of ``instructions/svdf.py``."""

from __future__ import annotations

from delegraph_numba_cpu.codegen import math_functions
from delegraph_numba_cpu.codegen import registers as r
from delegraph_numba_cpu.codegen.intrinsics import (
    I16,
    jit,
    load_f32,
    load_i16,
    load_i32,
    real,
    store_f32,
    store_i16,
    store_u8,
    word,
)
from delegraph_numba_cpu.codegen.registry import kernel
from delegraph_numba_cpu.codegen.strided_copies import HAS_MASKS
from delegraph_numba_cpu.instructions import svdf as instructions
from delegraph_numba_cpu.kernels.fixed_point import scaled, wrapped

(
    SOURCE, TARGET, STATE, FEATURES, TIMES, BIAS, SUMS, BATCH, INPUTS, UNITS, RANK, WINDOW,
    MULTIPLIER_IN, SHIFT_IN, MULTIPLIER_OUT, SHIFT_OUT, ZERO_OUT, TILES,
) = instructions.INTEGER.slots(*instructions.INTEGER.names)  # fmt: skip

(
    F_PRODUCTS, F_TARGET, F_STATE, F_TIMES, F_BIAS, F_BATCH, F_UNITS, F_RANK, F_WINDOW, F_LOW,
    F_HIGH, F_CURVE, F_TILES,
) = instructions.FLOAT.slots(*instructions.FLOAT.names)  # fmt: skip


def sign_bit(x):
    """Return 1.0 for each float32 of *x* whose sign bit is set, else 0.0."""
    return (x.bits() < 0).choose(x.filled(1.0), 0.0)


load_shorts, store_shorts = r.loader(r.INTS, I16), r.storer(r.INTS, I16)
sum_of, sum_floats = r.folder(r.INTS, r.plus), r.folder(r.FLOATS, r.plus)
tanh, sign = r.unary(r.FLOATS, math_functions.tanh), r.unary(r.FLOATS, sign_bit)


@kernel(instructions.INTEGER)
def svdf(record, tile, worker):
    """Compute this tile's units of all sequences; a unit is one output of an integer layer.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    units, inputs, tiles = word(record, UNITS), word(record, INPUTS), word(record, TILES)
    tasks = word(record, BATCH) * units
    first, last = tasks * tile // tiles, tasks * (tile + 1) // tiles
    while first < last:
        sequence, unit = first // units, first % units
        count = min(units - unit, last - first)
        source, target = word(record, SOURCE) + sequence * inputs, word(record, TARGET) + first
        compute_units(record, sequence * units, unit, count, source, target)
        first += count


@jit
def compute_units(record, first, unit, count, source, target):
    """Compute some units (outputs) of one sequence.

    Args:
        record: address of the kernel call's operands.
        first: number of the sequence's first unit, counted over all sequences.
        unit: number of the first computed unit.
        count: number of units.
        source: address of the sequence's input.
        target: address of the first computed unit's output.
    """
    # Words are loaded once here; LLVM would load them again after each store.
    rank, inputs, row = word(record, RANK), word(record, INPUTS), 2 * word(record, WINDOW)
    into, shift_into = word(record, MULTIPLIER_IN), word(record, SHIFT_IN)
    out, shift_out = word(record, MULTIPLIER_OUT), word(record, SHIFT_OUT)
    bias, zero = word(record, BIAS) + 4 * unit, word(record, ZERO_OUT)
    features = word(record, FEATURES) + unit * rank * inputs
    sums, times = word(record, SUMS) + unit * rank * 4, word(record, TIMES) + unit * rank * row
    state = word(record, STATE) + (first + unit) * rank * row
    for i in range(count):
        total = load_i32(bias + 4 * i) + 0
        for _ in range(rank):
            product = dot_bytes(source, features, inputs) + load_i32(sums)
            latest = min(max(scaled(product, into, shift_into, False), -32768), 32767)
            total += filtered(state, times, row // 2, latest)
            features, sums, times, state = features + inputs, sums + 4, times + row, state + row
        total = scaled(wrapped(total), out, shift_out, False) + zero
        store_u8(target + i, min(max(total, -128), 127))


@jit
def dot_bytes(a, b, count):
    """Return the dot product of two vectors of *count* int8, at the addresses *a* and *b*."""
    zero = r.ints(0)
    total = zero
    for i in range(0, count, r.LANES):
        x = r.widen_signed(a + i, count - i, zero)
        total = r.add_ints(total, r.multiply_ints(x, r.widen_signed(b + i, count - i, zero)))
    return sum_of(total)


@jit
def filtered(state, times, window, latest):
    """Shift a filter's int16 results by one time step; return their dot product with the weights.

    Args:
        state: address of the results, oldest first.
        times: address of the weights of the time steps.
        window: number of results.
        latest: the new result.
    """
    last, zero, done = window - 1, r.ints(0), 0
    total = zero
    # There are no masks for int16, so the last elements are computed one at a time.
    for k in range(0, last if HAS_MASKS else last - r.LANES + 1, r.LANES):
        value = load_shorts(state + 2 * k + 2, last - k, zero)
        store_shorts(state + 2 * k, value, last - k)
        product = r.multiply_ints(value, load_shorts(times + 2 * k, last - k, zero))
        total, done = r.add_ints(total, product), k + r.LANES
    found = sum_of(total) if done else 0
    for k in range(done, last):
        value = load_i16(state + 2 * k + 2)
        store_i16(state + 2 * k, value)
        found += value * load_i16(times + 2 * k)
    store_i16(state + 2 * last, latest)
    return found + latest * load_i16(times + 2 * last)


@kernel(instructions.FLOAT)
def svdf_f32(record, tile, worker):
    """Compute this tile's units of all sequences; a unit is one output of a float layer.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    units, rank, row = word(record, F_UNITS), word(record, F_RANK), 4 * word(record, F_WINDOW)
    tasks, tiles = word(record, F_BATCH) * units, word(record, F_TILES)
    first, last = tasks * tile // tiles, tasks * (tile + 1) // tiles
    for task in range(first, last):
        unit = task % units
        total = load_f32(word(record, F_BIAS) + 4 * unit)
        for k in range(rank):
            filter = task * rank + k
            total += filtered_floats(
                word(record, F_STATE) + filter * row,
                word(record, F_TIMES) + (unit * rank + k) * row,
                word(record, F_WINDOW),
                load_f32(word(record, F_PRODUCTS) + 4 * filter),
            )
        store_f32(word(record, F_TARGET) + 4 * task, total)
    activate(record, word(record, F_TARGET) + 4 * first, last - first)


@jit
def filtered_floats(state, times, window, latest):
    """Shift a filter's float results by one time step; return their dot product with the weights.

    Args:
        state: address of the results, oldest first.
        times: address of the weights of the time steps.
        window: number of results.
        latest: the new result.
    """
    zero = r.floats(0.0)
    total = zero
    for k in range(0, window - 1, r.LANES):
        left = window - 1 - k
        value = r.load_floats(state + 4 * k + 4, left, zero)
        r.store_floats(state + 4 * k, value, left)
        total = r.add_product(value, r.load_floats(times + 4 * k, left, zero), total)
    store_f32(state + 4 * window - 4, latest)
    return sum_floats(total) + latest * load_f32(times + 4 * window - 4)


@jit
def activate(record, values, count):
    """Apply the layer's activation function to *count* floats in place.

    *record* is the address of the kernel call's operands.
    """
    zero, curve = r.floats(0.0), word(record, F_CURVE)
    low, high = r.floats(real(record, F_LOW)), r.floats(real(record, F_HIGH))
    for i in range(0, count, r.LANES):
        value = r.load_floats(values + 4 * i, count - i, zero)
        if curve == instructions.TANH:
            value = tanh(value)
        elif curve == instructions.SIGN_BIT:
            value = sign(value)
        else:
            value = r.larger_floats(low, r.smaller_floats(high, value))  # NaN stays NaN
        r.store_floats(values + 4 * i, value, count - i)
