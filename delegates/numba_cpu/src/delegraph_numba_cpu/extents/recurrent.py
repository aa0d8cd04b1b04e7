"""What LSTM layers touch."""

from __future__ import annotations

from delegraph_numba_cpu.blocks import lstm_f32, lstm_int8
from delegraph_numba_cpu.extents.touched import Touched, rule

STRIP, DEPTH = 64, 8
"""Columns of a strip of weights; their rows are a multiple of so many."""

TABLE_BYTES = 2 << 16

ACC_BYTES = 4 * STRIP * lstm_int8.ROWS


def _padded(count: int, unit: int) -> int:
    return -(-count // unit) * unit


@rule(lstm_int8.PROJECT)
def project(row: Touched) -> None:
    rows, inputs, width = row["rows"], row["inputs"], row["width"]
    columns, depth = _padded(width, STRIP), _padded(inputs, DEPTH)
    row.require(width % 16 == 0 == width % row["row"], "gates take whole vectors")
    row.read("source", rows * inputs)
    row.read("input_weights", columns * depth)
    row.read("input_bias", 4 * columns)
    row.read("gate_records", width // row["row"] * lstm_int8.GATE_BYTES)
    row.write("gates", 2 * rows * width)
    row.scratch(ACC_BYTES + lstm_int8.ROWS * depth)


def _steps(row: Touched, gate_bytes: int, output_bytes: int) -> None:
    """Say what is touched of gates, outputs and states, whose values have so many bytes."""
    steps, batch, width = row["steps"], row["batch"], row["width"]
    row.require(row["row"] % 16 == 0 and row["row"] >= row["cells"], "a gate has all cells")
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
    _steps(row, 2, 1)
    count, cells, outputs, batch = (row[name] for name in ("count", "cells", "outputs", "batch"))
    row.write("cell_state", 2 * batch * cells)
    columns, depth = _padded(row["width"], STRIP), _padded(outputs, DEPTH)
    row.read("recurrent_weights", columns * depth)
    row.read("recurrent_bias", 4 * columns)
    row.read("gate_records", count * lstm_int8.GATE_BYTES)
    for name in ("sigmoid", "tanh", "cell_tanh"):
        row.read(name, TABLE_BYTES)
    _optional(row, "peephole", 2 * (count - 1) * batch * cells)
    _optional(row, "norm", 2 * count * cells)
    _optional(row, "norm_bias", 4 * count * cells)
    columns = _padded(outputs, STRIP)
    _optional(row, "projection", columns * _padded(cells, DEPTH))
    _optional(row, "projection_bias", 4 * columns)
    row.scratch(ACC_BYTES + _padded(max(outputs, cells), DEPTH))


def _optional(row: Touched, name: str, stop: int) -> None:
    if row.has(name):
        row.read(name, stop)


@rule(lstm_f32.LSTM)
def lstm_of_floats(row: Touched) -> None:
    _steps(row, 4, 4)
    count, cells, outputs = row["count"], row["cells"], row["outputs"]
    row.write("cell_state", 4 * row["batch"] * cells)
    row.require(row["width"] % STRIP == 0, "gates take whole strips")
    _strips(row, "weights", "headers", row["width"], outputs)
    vectors = 4 * row["row"]
    _optional(row, "bias", count * vectors)
    _optional(row, "norm", count * vectors)
    _optional(row, "peephole", (count - 1) * vectors)
    if row.has("projection"):
        columns = _padded(outputs, STRIP)
        _strips(row, "projection", "projection_headers", columns, cells)
        row.read("projection_bias", 4 * columns)
    vector = 4 * STRIP + _padded(max(outputs, cells), DEPTH) if row["is_hybrid"] else 0
    row.scratch(4 * (_padded(cells, STRIP) + _padded(outputs, STRIP)) + vector)


def _strips(row: Touched, weights: str, headers: str, columns: int, depth: int) -> None:
    """Say what is read of a matrix of strips."""
    if row["is_hybrid"]:
        row.read(weights, columns * _padded(depth, DEPTH))
        row.read(headers, columns // STRIP * lstm_f32.HEADER_BYTES)
    else:
        row.read(weights, 4 * columns * depth)
