"""Recurrent layers; see ``blocks/recurrent.py``."""
# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np

from delegraph_numba_cpu.blocks import recurrent as blocks
from delegraph_numba_cpu.kernels import functions
from delegraph_numba_cpu.kernels import registers as r
from delegraph_numba_cpu.kernels.fixed_point import scaled, wrapped
from delegraph_numba_cpu.kernels.lanes import Lanes
from delegraph_numba_cpu.kernels.machine import (
    copy_bytes,
    jit,
    load_f32,
    load_i16,
    load_i32,
    real,
    store_i16,
    store_u8,
    word,
)
from delegraph_numba_cpu.kernels.registry import kernel

(
    SOURCE, TARGET, STATE, FEATURES, TIMES, BIAS, SUMS, BATCH, INPUTS, UNITS, RANK, WINDOW,
    MULTIPLIER_IN, SHIFT_IN, MULTIPLIER_OUT, SHIFT_OUT, ZERO_OUT, TILES,
) = blocks.SVDF.slots(*blocks.SVDF.names)  # fmt: skip

sum_of = r.folder(r.INTS, r.plus)


@kernel(blocks.SVDF)
def svdf(block, tile, worker):
    """Compute the tile's share of the units of all sequences."""
    units, rank, inputs = word(block, UNITS), word(block, RANK), word(block, INPUTS)
    tasks, tiles = word(block, BATCH) * units, word(block, TILES)
    for task in range(tasks * tile // tiles, tasks * (tile + 1) // tiles):
        sequence, unit = task // units, task % units
        total = load_i32(word(block, BIAS) + 4 * unit) + 0
        for k in range(rank):
            filter = unit * rank + k
            x = word(block, SOURCE) + sequence * inputs
            product = dot_bytes(x, word(block, FEATURES) + filter * inputs, inputs)
            product += load_i32(word(block, SUMS) + 4 * filter)
            latest = scaled(product, word(block, MULTIPLIER_IN), word(block, SHIFT_IN), False)
            latest = min(max(latest, -32768), 32767)
            row = (sequence * units * rank + filter) * word(block, WINDOW) * 2
            total += filtered(block, word(block, STATE) + row, filter, latest)
        total = scaled(wrapped(total), word(block, MULTIPLIER_OUT), word(block, SHIFT_OUT), False)
        total = min(max(total + word(block, ZERO_OUT), -128), 127)
        store_u8(word(block, TARGET) + task, total)


@jit
def dot_bytes(a, b, count):
    """Return the sum of the products of int8."""
    zero = r.ints(0)
    total = zero
    for i in range(0, count, r.LANES):
        x = r.widen_signed(a + i, count - i, zero)
        total = r.add_ints(total, r.multiply_ints(x, r.widen_signed(b + i, count - i, zero)))
    return sum_of(total)


@jit
def filtered(block, state, filter, latest):
    """Move a filter's window on, and return its sum weighted by time."""
    window = word(block, WINDOW)
    times = word(block, TIMES) + filter * window * 2
    total = 0
    for k in range(window - 1):
        value = load_i16(state + 2 * k + 2)
        store_i16(state + 2 * k, value)
        total += value * load_i16(times + 2 * k)
    store_i16(state + 2 * window - 2, latest)
    return total + latest * load_i16(times + 2 * window - 2)


(
    L_SOURCE, L_TARGET, OUTPUT_STATE, CELL_STATE, WEIGHTS, L_BIAS, PEEPHOLE, NORM,
    PROJECTION, PROJECTION_BIAS, SCRATCH, SCRATCH_BYTES, STEPS, L_BATCH, L_INPUTS, CELLS, OUTPUTS,
    GATES, SOURCE_STEP, SOURCE_BATCH, TARGET_STEP, TARGET_BATCH, ACTIVATION, CELL_CLIP,
    PROJECTION_CLIP, L_TILES,
) = blocks.LSTM.slots(*blocks.LSTM.names)  # fmt: skip

STRIP = 4 * r.LANES


def sign_bit(x):
    """Return 1 where a sign is set, else 0."""
    return (x.bits() < 0).choose(x.filled(1.0), 0.0)


sigmoid, tanh = r.unary(r.FLOATS, functions.logistic), r.unary(r.FLOATS, functions.tanh)
root, sign = r.unary(r.FLOATS, Lanes.square_root), r.unary(r.FLOATS, sign_bit)
sum_floats = r.folder(r.FLOATS, r.plus)


@jit
def padded(count, unit):
    """Return *count* rounded up to a multiple of *unit*."""
    return (count + unit - 1) // unit * unit


@kernel(blocks.LSTM)
def lstm(block, tile, worker):
    """Run the sequences of the tile."""
    batch, tiles = word(block, L_BATCH), word(block, L_TILES)
    for sequence in range(batch * tile // tiles, batch * (tile + 1) // tiles):
        source = word(block, L_SOURCE) + sequence * word(block, SOURCE_BATCH)
        target = word(block, L_TARGET) + sequence * word(block, TARGET_BATCH)
        for _ in range(word(block, STEPS)):
            lstm_step(block, source, target, sequence, worker)
            source += word(block, SOURCE_STEP)
            target += word(block, TARGET_STEP)


@jit
def lstm_step(block, source, target, sequence, worker):
    """Run one step of one sequence."""
    inputs, cells, outputs = word(block, L_INPUTS), word(block, CELLS), word(block, OUTPUTS)
    length, row = inputs + outputs, padded(cells, r.LANES)
    state = word(block, OUTPUT_STATE) + sequence * outputs * 4
    cell = word(block, CELL_STATE) + sequence * cells * 4
    vector = word(block, SCRATCH) + worker * word(block, SCRATCH_BYTES)
    gates = vector + 4 * padded(length, r.LANES)
    hidden = gates + 4 * padded(word(block, GATES) * row, STRIP)
    copy_bytes(vector, source, 4 * inputs)
    copy_bytes(vector + 4 * inputs, state, 4 * outputs)
    multiply(vector, length, word(block, WEIGHTS), word(block, GATES) * row, gates)
    update_cell(block, gates, cell)
    finish_output(block, gates, cell, hidden)
    if word(block, PROJECTION):
        projected = hidden + 4 * row
        multiply(hidden, cells, word(block, PROJECTION), outputs, projected)
        add_bias(projected, word(block, PROJECTION_BIAS), outputs)
        clip(projected, outputs, real(block, PROJECTION_CLIP))
        hidden = projected
    copy_bytes(state, hidden, 4 * outputs)
    copy_bytes(target, hidden, 4 * outputs)


@jit
def multiply(vector, length, weights, width, target):
    """Store a vector times a matrix of strips; *width* is rounded up to whole strips."""
    zero = r.floats(0.0)
    for first in range(0, width, STRIP):
        a = b = c = d = zero
        for k in range(length):
            x = r.floats(load_f32(vector + 4 * k))
            a = r.add_product(x, r.load_floats(weights, r.LANES, zero), a)
            b = r.add_product(x, r.load_floats(weights + 4 * r.LANES, r.LANES, zero), b)
            c = r.add_product(x, r.load_floats(weights + 8 * r.LANES, r.LANES, zero), c)
            d = r.add_product(x, r.load_floats(weights + 12 * r.LANES, r.LANES, zero), d)
            weights += 4 * STRIP
        place = target + 4 * first
        r.store_floats(place, a, r.LANES)
        r.store_floats(place + 4 * r.LANES, b, r.LANES)
        r.store_floats(place + 8 * r.LANES, c, r.LANES)
        r.store_floats(place + 12 * r.LANES, d, r.LANES)


@jit
def add_bias(values, bias, count):
    """Add one vector to another."""
    zero = r.floats(0.0)
    for i in range(0, count, r.LANES):
        rest = count - i
        value = r.load_floats(bias + 4 * i, rest, zero)
        value = r.add_floats(r.load_floats(values + 4 * i, rest, zero), value)
        r.store_floats(values + 4 * i, value, rest)


@jit
def clip(values, count, limit):
    """Clamp a vector to ``[-limit, limit]``, if the limit is positive."""
    if limit > 0:
        zero, high, low = r.floats(0.0), r.floats(limit), r.floats(-limit)
        for i in range(0, count, r.LANES):
            value = r.load_floats(values + 4 * i, count - i, zero)
            value = r.larger_floats(r.smaller_floats(value, high), low)
            r.store_floats(values + 4 * i, value, count - i)


@jit
def finish_gate(block, gate, k, cell, peephole):
    """Add to gate *k* what it sees of the cell state, its bias, and normalise it if need be."""
    cells = word(block, CELLS)
    row = 4 * padded(cells, r.LANES)
    zero = r.floats(0.0)
    if word(block, PEEPHOLE) and peephole >= 0:
        weights = word(block, PEEPHOLE) + peephole * row
        for i in range(0, cells, r.LANES):
            rest = cells - i
            value = r.load_floats(gate + 4 * i, rest, zero)
            weight = r.load_floats(weights + 4 * i, rest, zero)
            value = r.add_product(weight, r.load_floats(cell + 4 * i, rest, zero), value)
            r.store_floats(gate + 4 * i, value, rest)
    if word(block, NORM):
        normalise(gate, word(block, NORM) + k * row, cells)
    add_bias(gate, word(block, L_BIAS) + k * row, cells)


@jit
def normalise(gate, norm, cells):
    """Give a gate the mean 0 and the variance 1, and scale it."""
    zero = r.floats(0.0)
    total = zero
    for i in range(0, cells, r.LANES):
        total = r.add_floats(total, r.load_floats(gate + 4 * i, cells - i, zero))
    mean = r.floats(-sum_floats(total) / cells)
    squares = zero
    for i in range(0, cells, r.LANES):
        rest = cells - i
        value = r.add_floats(r.load_floats(gate + 4 * i, rest, zero), mean)
        r.store_floats(gate + 4 * i, value, rest)
        value = r.cut_floats(value, rest, zero)
        squares = r.add_product(value, value, squares)
    deviation = root(r.floats(sum_floats(squares) / cells + np.float32(1e-8)))
    factor = r.floats(np.float32(1.0) / r.first_float(deviation))
    for i in range(0, cells, r.LANES):
        rest = cells - i
        value = r.multiply_floats(r.load_floats(gate + 4 * i, rest, zero), factor)
        value = r.multiply_floats(value, r.load_floats(norm + 4 * i, rest, zero))
        r.store_floats(gate + 4 * i, value, rest)


@jit
def update_cell(block, gates, cell):
    """Move the cell state on."""
    cells, count = word(block, CELLS), word(block, GATES)
    row = 4 * padded(cells, r.LANES)
    for k in range(count - 1):
        finish_gate(block, gates + k * row, k, cell, k if k < count - 2 else -1)
    zero, one, minus = r.floats(0.0), r.floats(1.0), r.floats(-1.0)
    forget, new = gates + (count - 3) * row, gates + (count - 2) * row
    for i in range(0, cells, r.LANES):
        rest = cells - i
        keep = sigmoid(r.load_floats(forget + 4 * i, rest, zero))
        if count == 3:
            share = r.add_product(keep, minus, one)
        else:
            share = sigmoid(r.load_floats(gates + 4 * i, rest, zero))
        value = activated(r.load_floats(new + 4 * i, rest, zero), word(block, ACTIVATION))
        state = r.multiply_floats(r.load_floats(cell + 4 * i, rest, zero), keep)
        r.store_floats(cell + 4 * i, r.add_product(share, value, state), rest)
    clip(cell, cells, real(block, CELL_CLIP))


@jit
def finish_output(block, gates, cell, hidden):
    """Store what the output gate lets out of the cell."""
    cells, last = word(block, CELLS), word(block, GATES) - 1
    gate = gates + last * 4 * padded(cells, r.LANES)
    finish_gate(block, gate, last, cell, last - 1)
    zero = r.floats(0.0)
    for i in range(0, cells, r.LANES):
        rest = cells - i
        value = activated(r.load_floats(cell + 4 * i, rest, zero), word(block, ACTIVATION))
        share = sigmoid(r.load_floats(gate + 4 * i, rest, zero))
        r.store_floats(hidden + 4 * i, r.multiply_floats(value, share), rest)


@jit
def activated(value, activation):
    """Return the activation function of a vector."""
    zero = r.floats(0.0)
    if activation == blocks.TANH:
        return tanh(value)
    if activation == blocks.SIGN_BIT:
        return sign(value)
    if activation == blocks.RELU:
        return r.larger_floats(value, zero)
    if activation == blocks.RELU_N1_TO_1:
        return r.smaller_floats(r.larger_floats(value, r.floats(-1.0)), r.floats(1.0))
    if activation == blocks.RELU6:
        return r.smaller_floats(r.larger_floats(value, zero), r.floats(6.0))
    return value
