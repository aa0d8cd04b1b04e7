"""Bytes that integer LSTM layers read and write, with rules shared with float layers."""

from __future__ import annotations

from delegraph_numba_cpu.bounds.rules import Touched, rule
from delegraph_numba_cpu.instructions import lstm_int8
from delegraph_numba_cpu.instructions.memory import padded

STRIP, DEPTH = 64, 8
"""Number of columns of a strip of weights, and the number by which the number of rows is
divisible."""

TABLE_BYTES = 2 << 16

ACC_BYTES = 4 * STRIP * lstm_int8.ROWS


@rule(lstm_int8.PROJECT)
def project(row: Touched) -> None:
    rows, inputs, width = row["rows"], row["inputs"], row["width"]
    columns, depth = padded(width, STRIP), padded(inputs, DEPTH)
    row.loops(rows, width)
    row.require(width % 16 == 0 == width % row["row"], "gates take whole vectors")
    row.read("source", rows * inputs)
    row.read("input_weights", columns * depth)
    row.read("input_bias", 4 * columns)
    row.read("gate_records", width // row["row"] * lstm_int8.GATE_BYTES)
    row.write("gates", 2 * rows * width)
    row.scratch(ACC_BYTES + lstm_int8.ROWS * depth)


def touch_steps(row: Touched, gate_bytes: int, output_bytes: int) -> None:
    """Declare the gates, outputs and output state of an LSTM layer.

    Args:
        row: kernel call of the LSTM layer that is being checked.
        gate_bytes: number of bytes of a gate's value.
        output_bytes: number of bytes of an output value.
    """
    steps, batch, width = row["steps"], row["batch"], row["width"]
    row.loops(steps, batch, width)
    row.require(row["row"] % 16 == 0 and row["row"] >= row["cells"], "a gate has all cells")
    row.require(min(row["cells"], row["outputs"]) > 0, "a layer has cells and outputs")
    row.require(row["count"] in (3, 4) and row["count"] * row["row"] <= width, "gates fit")
    before = (steps - 1) * row["gates_step"] + (batch - 1) * row["gates_batch"]
    row.write("gates", before + gate_bytes * width)
    before = (steps - 1) * row["target_step"] + (batch - 1) * row["target_batch"]
    row.write("target", before + output_bytes * row["outputs"])
    row.require(
        row.has("projection") or row["outputs"] == row["cells"], "outputs are cells or projected"
    )
    row.write("output_state", batch * row["outputs"] * output_bytes)


@rule(lstm_int8.LSTM)
def lstm_of_bytes(row: Touched) -> None:
    touch_steps(row, 2, 1)
    count, cells, outputs, batch = (row[name] for name in ("count", "cells", "outputs", "batch"))
    row.write("cell_state", 2 * batch * cells)
    columns, depth = padded(row["width"], STRIP), padded(outputs, DEPTH)
    row.read("recurrent_weights", columns * depth)
    row.read("recurrent_bias", 4 * columns)
    row.read("gate_records", count * lstm_int8.GATE_BYTES)
    for name in ("sigmoid", "tanh", "cell_tanh"):
        row.read(name, TABLE_BYTES)
    if row.has("peephole"):
        row.read("peephole", 2 * (count - 1) * batch * cells)
    if row.has("norm"):
        row.read("norm", 2 * count * cells)
        row.read("norm_bias", 4 * count * cells)
    columns = padded(outputs, STRIP)
    if row.has("projection"):
        row.read("projection", columns * padded(cells, DEPTH))
        row.read("projection_bias", 4 * columns)
    row.scratch(ACC_BYTES + padded(max(outputs, cells), DEPTH))
