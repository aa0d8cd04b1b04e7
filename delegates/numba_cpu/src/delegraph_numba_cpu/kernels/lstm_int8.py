"""LSTM layers in integers; see ``delegraph.kernels.recurrent.lstm_integer_cell``."""

from __future__ import annotations

from numba import types
from numba.extending import intrinsic

from delegraph_numba_cpu.codegen import registers as r
from delegraph_numba_cpu.codegen.intrinsics import (
    I16,
    I32,
    I64,
    copy_bytes,
    jit,
    load_i16,
    load_i32,
    store_i8,
    store_i16,
    word,
)
from delegraph_numba_cpu.codegen.lanes import Lanes
from delegraph_numba_cpu.codegen.lstm_matrix import (
    DEPTH,
    MANY,
    STRIP,
    copy_unsigned,
    dot_row,
    dot_rows,
)
from delegraph_numba_cpu.codegen.registry import kernel
from delegraph_numba_cpu.codegen.vector_ir import splat
from delegraph_numba_cpu.instructions import lstm_int8 as instructions
from delegraph_numba_cpu.kernels.fixed_point import scaled
from delegraph_numba_cpu.kernels.lstm_int8_normalization import normalise

(
    P_SOURCE, P_GATES, INPUT_WEIGHTS, INPUT_BIAS, P_RECORDS, P_ROWS, P_INPUTS, P_ROW, P_WIDTH,
    P_SCRATCH, P_SCRATCH_BYTES, P_TILES,
) = instructions.PROJECT.slots(*instructions.PROJECT.names)  # fmt: skip
(
    GATES, TARGET, OUTPUT_STATE, CELL_STATE, WEIGHTS, BIAS, RECORDS, SIGMOID, TANH, CELL_TANH,
    PEEPHOLE, NORM, NORM_BIAS, PROJECTION, PROJECTION_BIAS, STEPS, BATCH, CELLS, OUTPUTS, COUNT,
    ROW, WIDTH, GATES_STEP, GATES_BATCH, TARGET_STEP, TARGET_BATCH, CELL_SHIFT, CELL_LOW,
    CELL_HIGH, HIDDEN_MULTIPLIER, HIDDEN_SHIFT, HIDDEN_ZERO, PROJECTION_MULTIPLIER,
    PROJECTION_SHIFT, PROJECTION_ZERO, PROJECTION_LIMIT, SCRATCH, SCRATCH_BYTES, TILES,
) = instructions.LSTM.slots(*instructions.LSTM.names)  # fmt: skip
(
    INPUT_MULTIPLIER, INPUT_SHIFT, RECURRENT_MULTIPLIER, RECURRENT_SHIFT, PEEPHOLE_MULTIPLIER,
    PEEPHOLE_SHIFT, NORM_MULTIPLIER, NORM_SHIFT, LEAST_VARIANCE,
) = instructions.GATE.slots(*instructions.GATE.names)  # fmt: skip

ACC_BYTES = 4 * STRIP * instructions.ROWS

load_shorts, store_shorts = r.whole_loader(r.INTS, I16), r.whole_storer(r.INTS, I16)
load_sums = r.whole_loader(r.INTS)
saturated = r.unary(r.INTS, lambda x: x.at_least(-32768).at_most(32767))


@intrinsic
def rescaled(context, x, multiplier, left, right, half, away):
    """Return int32 ``x * multiplier * 2**(left - right - 31)``, clamped to ±2**17.

    It is rounded as by :func:`~delegraph_numba_cpu.kernels.fixed_point.scaled`, halves away from
    zero. For this, *half* is ``2**right // 2``, and *away* is 0 if *right* is 0, otherwise -1.
    """

    def generate(lowering, builder, signature, arguments):
        x, multiplier, left, right, half, away = arguments
        lanes = x.type.count
        multiplier, right, half, away = (
            Lanes(builder, splat(builder, each, lanes)) for each in (multiplier, right, half, away)
        )
        shifted = Lanes(builder, x) << Lanes(
            builder, splat(builder, builder.trunc(left, I32), lanes)
        )
        product = shifted.widen(I64, signed=True) * multiplier
        high = (product + (1 << 30)) >> 31
        value = (high + half + ((high >> 63) & away)) >> right
        return value.at_least(-(1 << 17)).at_most(1 << 17).narrow(I32).value

    return r.INTS(r.INTS, *[types.int64] * 5), generate


@kernel(instructions.PROJECT)
def project(record, tile, worker):
    """Compute this tile's rows of the inputs' part of all gates: the input times its weights.

    *record* is the address of the call's operands, *tile* the number of the part that is computed,
    and *worker* the number of the thread.
    """
    rows, tiles, inputs = word(record, P_ROWS), word(record, P_TILES), word(record, P_INPUTS)
    width, row = word(record, P_WIDTH), word(record, P_ROW)
    row_bytes = (inputs + DEPTH - 1) // DEPTH * DEPTH
    acc = word(record, P_SCRATCH) + worker * word(record, P_SCRATCH_BYTES)
    vectors = acc + ACC_BYTES
    last = rows * (tile + 1) // tiles
    for first in range(rows * tile // tiles, last, MANY):
        count = min(MANY, last - first)
        for m in range(count):
            source = word(record, P_SOURCE) + (first + m) * inputs
            copy_unsigned(source, vectors + m * row_bytes, inputs)
        for column in range(0, width, STRIP):
            weights = word(record, INPUT_WEIGHTS) + column * row_bytes
            bias = word(record, INPUT_BIAS) + 4 * column
            if count == 1:
                dot_row(vectors, row_bytes, weights, bias, acc)
            else:
                dot_rows(vectors, row_bytes, weights, bias, acc)
            for m in range(count):
                gates = word(record, P_GATES) + 2 * (first + m) * width
                records = word(record, P_RECORDS)
                add_strip(acc + 4 * STRIP * m, column, width, row, records, 0, gates)


@jit
def add_strip(acc, column, width, row, records, is_recurrent, gates):
    """Rescale the sums of one strip of 64 columns to int16, and store them in the gates.

    The sums of recurrent weights are added to the values in the gates.

    Args:
        acc: address of the sums, int32.
        column: number of the first column.
        width: number of columns of all gates.
        row: number of columns of one gate.
        records: address of the gates' multipliers.
        is_recurrent: whether the sums are those of recurrent weights.
        gates: address of the gates.
    """
    place = INPUT_MULTIPLIER + is_recurrent * (RECURRENT_MULTIPLIER - INPUT_MULTIPLIER)
    for i in range(0, min(STRIP, width - column), r.LANES):
        scales = records + (column + i) // row * instructions.GATE_BYTES + 8 * place
        shift = word(scales, 1)
        right = max(-shift, 0)
        value = load_sums(acc + 4 * i)
        half, away = (1 << right) >> 1, -min(right, 1)
        value = rescaled(value, word(scales, 0), max(shift, 0), right, half, away)
        target = gates + 2 * (column + i)
        if is_recurrent:
            value = r.add_ints(value, load_shorts(target))
        store_shorts(target, saturated(value))


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

    Args:
        record: address of the kernel call's operands.
        gates: address of the step's gates, which hold the products of the inputs.
        target: address of the step's output.
        sequence: number of the sequence.
        memory: address of this thread's scratch memory.
    """
    cells, outputs, width = word(record, CELLS), word(record, OUTPUTS), word(record, WIDTH)
    state = word(record, OUTPUT_STATE) + sequence * outputs
    cell = word(record, CELL_STATE) + sequence * cells * 2
    vector = memory + ACC_BYTES
    row_bytes = (outputs + DEPTH - 1) // DEPTH * DEPTH
    copy_unsigned(state, vector, outputs)
    for column in range(0, width, STRIP):
        weights = word(record, WEIGHTS) + column * row_bytes
        dot_row(vector, row_bytes, weights, word(record, BIAS) + 4 * column, memory)
        add_strip(memory, column, width, word(record, ROW), word(record, RECORDS), 1, gates)
    last = word(record, COUNT) - 1
    for k in range(last + 1):
        if k == last:
            update_cell(record, gates, cell)
        if word(record, PEEPHOLE) or word(record, NORM):
            finish_gate(record, gates, k, cell, sequence)
    if word(record, PROJECTION):
        store_hidden(record, gates, cell, vector, -128)
        store_projected(record, vector, memory, state)
    else:
        store_hidden(record, gates, cell, state, 0)
    copy_bytes(target, state, outputs)


@jit
def finish_gate(record, gates, k, cell, sequence):
    """Finish a gate: add the peephole product and normalise the gate, if the layer does these.

    Args:
        record: address of the kernel call's operands.
        gates: address of the step's gates.
        k: number of the gate.
        cell: address of the cell state.
        sequence: number of the sequence.
    """
    cells, gate_record = word(record, CELLS), word(record, RECORDS) + k * instructions.GATE_BYTES
    gate = gates + 2 * k * word(record, ROW)
    is_cell = k == word(record, COUNT) - 2
    if word(record, PEEPHOLE) and not is_cell:
        row = min(k, word(record, COUNT) - 2) * word(record, BATCH) + sequence
        weights = word(record, PEEPHOLE) + 2 * row * cells
        multiplier, shift = (
            word(gate_record, PEEPHOLE_MULTIPLIER),
            word(gate_record, PEEPHOLE_SHIFT),
        )
        for i in range(0, 2 * cells, 2):
            seen = load_i16(weights + i) * load_i16(cell + i)
            value = load_i16(gate + i) + scaled(seen, multiplier, shift, False)
            store_i16(gate + i, min(max(value, -32768), 32767))
    if word(record, NORM):
        weights = word(record, NORM) + 2 * k * cells
        bias = word(record, NORM_BIAS) + 4 * k * cells
        normalise(
            gate, cells, weights, bias, word(gate_record, NORM_MULTIPLIER),
            word(gate_record, NORM_SHIFT), word(gate_record, LEAST_VARIANCE),
        )  # fmt: skip


@jit
def look_up(table, value):
    """Return the entry for int16 *value* in *table*, which has an entry for each bit pattern."""
    return load_i16(table + 2 * (value & 0xFFFF))


@jit
def rounded_shift(value, shift):
    """Return ``value / 2**shift`` rounded to nearest, halves away from zero."""
    return (value + (1 << (shift - 1)) + (value >> 63)) >> shift


@jit
def update_cell(record, gates, cell):
    """Write the next cell state, int16: the state times the forget gate, plus the new part.

    The sum is clamped to the layer's limits of the cell state. *record* is the address of the
    kernel call's operands.
    """
    count, row = word(record, COUNT), 2 * word(record, ROW)
    forgets, news = gates + (count - 3) * row, gates + (count - 2) * row
    sigmoid, tanh = word(record, SIGMOID), word(record, TANH)
    shift, low, high = word(record, CELL_SHIFT), word(record, CELL_LOW), word(record, CELL_HIGH)
    for i in range(0, 2 * word(record, CELLS), 2):
        forget = look_up(sigmoid, load_i16(forgets + i)) + 0
        share = 32767 - forget if count == 3 else look_up(sigmoid, load_i16(gates + i)) + 0
        value = rounded_shift(forget * load_i16(cell + i), 15)
        value += rounded_shift(share * look_up(tanh, load_i16(news + i)), shift)
        store_i16(cell + i, min(max(value, low), high))


@jit
def store_hidden(record, gates, cell, target, flip):
    """Store the hidden vector at *target*, as int8 if *flip* is 0, as unsigned bytes if it is -128.

    *flip* is xored with each int8, so that unsigned bytes are larger by 128. *record* is the
    address of the kernel call's operands.
    """
    gate = gates + 2 * (word(record, COUNT) - 1) * word(record, ROW)
    sigmoid, tanh = word(record, SIGMOID), word(record, CELL_TANH)
    multiplier, shift = word(record, HIDDEN_MULTIPLIER), word(record, HIDDEN_SHIFT)
    zero = word(record, HIDDEN_ZERO)
    for i in range(word(record, CELLS)):
        share = look_up(sigmoid, load_i16(gate + 2 * i))
        product = share * look_up(tanh, load_i16(cell + 2 * i))
        value = scaled(product, multiplier, shift, False) + zero
        store_i8(target + i, min(max(value, -128), 127) ^ flip)


@jit
def store_projected(record, vector, acc, state):
    """Store at *state* the projection of the hidden vector, as int8.

    *vector* is the address of the hidden vector as unsigned bytes. *record* is the address of the
    kernel call's operands.
    """
    cells, outputs = word(record, CELLS), word(record, OUTPUTS)
    row_bytes = (cells + DEPTH - 1) // DEPTH * DEPTH
    multiplier, shift = word(record, PROJECTION_MULTIPLIER), word(record, PROJECTION_SHIFT)
    zero, limit = word(record, PROJECTION_ZERO), word(record, PROJECTION_LIMIT)
    for column in range(0, outputs, STRIP):
        weights = word(record, PROJECTION) + column * row_bytes
        dot_row(vector, row_bytes, weights, word(record, PROJECTION_BIAS) + 4 * column, acc)
        for i in range(min(STRIP, outputs - column)):
            value = scaled(load_i32(acc + 4 * i), multiplier, shift, False) + zero
            value = min(max(value, -128), 127)
            if limit:
                value = min(max(value, -limit), limit)
            store_i8(state + column + i, value)
