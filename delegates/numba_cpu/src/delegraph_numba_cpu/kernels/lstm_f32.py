"""LSTM layers of floats, with float or 8-bit weights."""

from __future__ import annotations

import numpy as np

from delegraph_numba_cpu.codegen import math_functions
from delegraph_numba_cpu.codegen import registers as r
from delegraph_numba_cpu.codegen.conv_hybrid_ir import measure_floats, quantize_floats
from delegraph_numba_cpu.codegen.intrinsics import copy_bytes, jit, load_f32, real, word
from delegraph_numba_cpu.codegen.lanes import Lanes
from delegraph_numba_cpu.codegen.lstm_matrix import DEPTH, dot_row
from delegraph_numba_cpu.codegen.lstm_matrix import STRIP as BYTE_STRIP
from delegraph_numba_cpu.codegen.registry import kernel
from delegraph_numba_cpu.instructions import lstm_f32 as instructions
from delegraph_numba_cpu.kernels.conv_hybrid_quantization import parameters

(
    GATES, TARGET, OUTPUT_STATE, CELL_STATE, WEIGHTS, HEADERS, BIAS, PEEPHOLE, NORM, PROJECTION,
    PROJECTION_HEADERS, PROJECTION_BIAS, IS_HYBRID, IS_ASYMMETRIC, STEPS, BATCH, CELLS, OUTPUTS,
    COUNT, ROW, WIDTH, GATES_STEP, GATES_BATCH, TARGET_STEP, TARGET_BATCH, SCRATCH, SCRATCH_BYTES,
    ACTIVATION, CELL_CLIP, PROJECTION_CLIP, TILES,
) = instructions.LSTM.slots(*instructions.LSTM.names)  # fmt: skip

STRIP = 4 * r.LANES
SUMS, SCALES = instructions.HEADER["sum"], instructions.HEADER["scale"]


def sign_bit(x):
    """Return 1.0 for each float32 of *x* whose sign bit is set, else 0.0."""
    return (x.bits() < 0).choose(x.filled(1.0), 0.0)


sigmoid, tanh = r.unary(r.FLOATS, math_functions.logistic), r.unary(r.FLOATS, math_functions.tanh)
root, sign = r.unary(r.FLOATS, Lanes.square_root), r.unary(r.FLOATS, sign_bit)
sum_floats = r.folder(r.FLOATS, r.plus)


@jit
def padded(count, unit):
    """Return *count* rounded up to a multiple of *unit*."""
    return (count + unit - 1) // unit * unit


@kernel(instructions.LSTM)
def lstm(record, tile, worker):
    """Run all time steps of this tile's sequences.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    batch, tiles = word(record, BATCH), word(record, TILES)
    memory = word(record, SCRATCH) + worker * word(record, SCRATCH_BYTES)
    for sequence in range(batch * tile // tiles, batch * (tile + 1) // tiles):
        gates = word(record, GATES) + sequence * word(record, GATES_BATCH)
        target = word(record, TARGET) + sequence * word(record, TARGET_BATCH)
        for _ in range(word(record, STEPS)):
            lstm_step(record, gates, target, sequence, memory)
            gates += word(record, GATES_STEP)
            target += word(record, TARGET_STEP)


@jit
def lstm_step(record, gates, target, sequence, memory):
    """Run one time step of one sequence.

    Scratch memory holds the hidden vector, its projection, and the memory of :func:`accumulate`.

    Args:
        record: address of the kernel call's operands.
        gates: address of the step's gates, which hold the products of the inputs.
        target: address of the step's output.
        sequence: number of the sequence.
        memory: address of this thread's scratch memory.
    """
    cells, outputs, last = word(record, CELLS), word(record, OUTPUTS), word(record, COUNT) - 1
    state = word(record, OUTPUT_STATE) + sequence * outputs * 4
    cell = word(record, CELL_STATE) + sequence * cells * 4
    result = memory + 4 * padded(cells, BYTE_STRIP)
    width = padded(outputs, BYTE_STRIP)
    rest = result + 4 * width
    weights, headers = word(record, WEIGHTS), word(record, HEADERS)
    accumulate(record, state, outputs, weights, headers, word(record, WIDTH), gates, rest)
    for k in range(last + 1):
        if k == last:
            update_cell(record, gates, cell)
        finish_gate(record, gates, k, cell)
    store_hidden(record, gates, cell, memory)
    hidden = memory
    if word(record, PROJECTION):
        weights, headers = word(record, PROJECTION), word(record, PROJECTION_HEADERS)
        copy_bytes(result, word(record, PROJECTION_BIAS), 4 * width)
        accumulate(record, memory, cells, weights, headers, width, result, rest)
        clip(result, outputs, real(record, PROJECTION_CLIP))
        hidden = result
    copy_bytes(state, hidden, 4 * outputs)
    copy_bytes(target, hidden, 4 * outputs)


@jit
def accumulate(record, source, length, weights, headers, width, target, memory):
    """Add the product of a vector and a matrix, packed in strips of columns, to some floats.

    Args:
        record: address of the kernel call's operands.
        source: address of the vector.
        length: length of the vector.
        weights: address of the packed matrix.
        headers: address of the sums and scales of 8-bit weights; unused for float weights.
        width: number of columns, a whole number of strips.
        target: address of the floats, one for each column.
        memory: address of scratch memory for 8-bit weights: 64 int32, and the vector as bytes.
    """
    if word(record, IS_HYBRID):
        accumulate_bytes(record, source, length, weights, headers, width, target, memory)
    else:
        accumulate_floats(source, length, weights, width, target)


@jit
def accumulate_floats(vector, length, weights, width, target):
    """Add the product of a vector and a float32 matrix, in strips of columns, to some floats.

    Arguments are those of :func:`accumulate`; *vector* is the address of the vector.
    """
    for first in range(0, width, STRIP):
        place = target + 4 * first
        a, b = load_all(place), load_all(place + 4 * r.LANES)
        c, d = load_all(place + 8 * r.LANES), load_all(place + 12 * r.LANES)
        for k in range(length):
            x = r.floats(load_f32(vector + 4 * k))
            a = r.add_product(x, load_all(weights), a)
            b = r.add_product(x, load_all(weights + 4 * r.LANES), b)
            c = r.add_product(x, load_all(weights + 8 * r.LANES), c)
            d = r.add_product(x, load_all(weights + 12 * r.LANES), d)
            weights += 4 * STRIP
        store_all(place, a)
        store_all(place + 4 * r.LANES, b)
        store_all(place + 8 * r.LANES, c)
        store_all(place + 12 * r.LANES, d)


load_all, store_all = r.whole_loader(r.FLOATS), r.whole_storer(r.FLOATS)
load_sums = r.whole_loader(r.INTS)


@jit
def accumulate_bytes(record, source, length, weights, headers, width, target, memory):
    """Quantise a vector to bytes, and add its product with an int8 matrix to some floats.

    Arguments are those of :func:`accumulate`.
    """
    measure_floats(source, length, memory)
    scale, inverse, zero, least = parameters(
        load_f32(memory), load_f32(memory + 4), word(record, IS_ASYMMETRIC)
    )
    vector, row_bytes = memory + 4 * BYTE_STRIP, padded(length, DEPTH)
    low, high = np.float32(least - zero), np.float32(127 - zero)
    quantize_floats(source, length, inverse, low, high, zero + 128, vector)
    unit, offset = r.floats(scale), r.ints(-zero)
    for first in range(0, width, BYTE_STRIP):
        dot_row(vector, row_bytes, weights, headers, memory)
        for i in range(0, 4 * BYTE_STRIP, 4 * r.LANES):
            total = r.multiply_ints(load_sums(headers + SUMS + i), offset)
            total = r.to_floats(r.add_ints(load_sums(memory + i), total))
            factor = r.multiply_floats(load_all(headers + SCALES + i), unit)
            place = target + 4 * first + i
            store_all(place, r.add_product(total, factor, load_all(place)))
        weights += row_bytes * BYTE_STRIP
        headers += instructions.HEADER_BYTES


@jit
def clip(values, count, limit):
    """Clamp *count* floats at *values* to ``[-limit, limit]`` if *limit* > 0; NaN stays NaN."""
    if limit > 0:
        zero, high, low = r.floats(0.0), r.floats(limit), r.floats(-limit)
        for i in range(0, count, r.LANES):
            value = r.load_floats(values + 4 * i, count - i, zero)
            value = r.larger_floats(low, r.smaller_floats(high, value))
            r.store_floats(values + 4 * i, value, count - i)


@jit
def finish_gate(record, gates, k, cell):
    """Finish a gate: add the peephole product and normalise the gate, if the layer does these.

    The gate of new cell values has no peephole.

    Args:
        record: address of the kernel call's operands.
        gates: address of the step's gates.
        k: number of the gate.
        cell: address of the cell state.
    """
    cells, row = word(record, CELLS), 4 * word(record, ROW)
    gate, cell_gate = gates + k * row, word(record, COUNT) - 2
    zero = r.floats(0.0)
    if word(record, PEEPHOLE) and k != cell_gate:
        weights = word(record, PEEPHOLE) + min(k, cell_gate) * row
        for i in range(0, cells, r.LANES):
            value = r.load_floats(cell + 4 * i, cells - i, zero)
            value = r.add_product(load_all(weights + 4 * i), value, load_all(gate + 4 * i))
            store_all(gate + 4 * i, value)
    if word(record, NORM):
        normalise(gate, word(record, NORM) + k * row, word(record, BIAS) + k * row, cells)


@jit
def normalise(gate, norm, bias, cells):
    """Normalise a gate to mean 0 and variance 1, multiply it by weights, and add a bias.

    Args:
        gate: address of the gate's values.
        norm: address of the weights.
        bias: address of the bias.
        cells: number of values.
    """
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
        offset = r.load_floats(bias + 4 * i, rest, zero)
        value = r.add_product(value, r.load_floats(norm + 4 * i, rest, zero), offset)
        r.store_floats(gate + 4 * i, value, rest)


@jit
def update_cell(record, gates, cell):
    """Write the next cell state: ``sigmoid(forget) * state + input * activation(new)``, clipped.

    ``input`` is ``sigmoid`` of the input gate, or ``1 - sigmoid(forget)`` for a layer of three
    gates.

    *record* is the address of the kernel call's operands.
    """
    cells, count, row = word(record, CELLS), word(record, COUNT), 4 * word(record, ROW)
    zero, one, minus = r.floats(0.0), r.floats(1.0), r.floats(-1.0)
    forget, new = gates + (count - 3) * row, gates + (count - 2) * row
    for i in range(0, cells, r.LANES):
        rest = cells - i
        keep = sigmoid(load_all(forget + 4 * i))
        coupled = r.add_product(keep, minus, one)
        share = coupled if count == 3 else sigmoid(load_all(gates + 4 * i))
        value = activated(load_all(new + 4 * i), word(record, ACTIVATION))
        state = r.multiply_floats(r.load_floats(cell + 4 * i, rest, zero), keep)
        r.store_floats(cell + 4 * i, r.add_product(share, value, state), rest)
    clip(cell, cells, real(record, CELL_CLIP))


@jit
def store_hidden(record, gates, cell, hidden):
    """Store the hidden vector: the activated cell state times the sigmoid of the output gate.

    *record* is the address of the kernel call's operands.
    """
    cells = word(record, CELLS)
    gate = gates + 4 * (word(record, COUNT) - 1) * word(record, ROW)
    zero = r.floats(0.0)
    for i in range(0, cells, r.LANES):
        value = r.load_floats(cell + 4 * i, cells - i, zero)
        value = activated(value, word(record, ACTIVATION))
        share = sigmoid(load_all(gate + 4 * i))
        store_all(hidden + 4 * i, r.multiply_floats(value, share))


@jit
def activated(value, activation):
    """Return the vector *value* after the activation function with the number *activation*.

    For all functions but SIGN_BIT, NaN stays NaN.
    """
    zero = r.floats(0.0)
    if activation == instructions.TANH:
        return tanh(value)
    if activation == instructions.SIGN_BIT:
        return sign(value)
    if activation == instructions.RELU:
        return r.larger_floats(zero, value)
    if activation == instructions.RELU_N1_TO_1:
        return r.smaller_floats(r.floats(1.0), r.larger_floats(r.floats(-1.0), value))
    if activation == instructions.RELU6:
        return r.smaller_floats(r.floats(6.0), r.larger_floats(zero, value))
    return value
