"""Bytes that LSTM layers of floats read and write."""

from __future__ import annotations

from delegraph_numba_cpu.bounds.lstm_int8 import DEPTH, STRIP, touch_steps
from delegraph_numba_cpu.bounds.rules import Touched, rule
from delegraph_numba_cpu.instructions import lstm_f32
from delegraph_numba_cpu.instructions.memory import padded


@rule(lstm_f32.LSTM)
def lstm_of_floats(row: Touched) -> None:
    touch_steps(row, 4, 4)
    count, cells, outputs = row["count"], row["cells"], row["outputs"]
    row.write("cell_state", 4 * row["batch"] * cells)
    row.require(row["width"] % STRIP == 0, "gates take whole strips")
    _strips(row, "weights", "headers", row["width"], outputs)
    vectors = 4 * row["row"]
    if row.has("norm"):
        row.read("norm", count * vectors)
        row.read("bias", count * vectors)
    if row.has("peephole"):
        row.read("peephole", (count - 1) * vectors)
    if row.has("projection"):
        columns = padded(outputs, STRIP)
        _strips(row, "projection", "projection_headers", columns, cells)
        row.read("projection_bias", 4 * columns)
    vector = 4 * STRIP + padded(max(outputs, cells), DEPTH) if row["is_hybrid"] else 0
    row.scratch(4 * (padded(cells, STRIP) + padded(outputs, STRIP)) + vector)


def _strips(row: Touched, weights: str, headers: str, columns: int, depth: int) -> None:
    """Declare the bytes of an LSTM's weights, ``[columns, depth]``, in strips of adjacent columns.

    *weights* is the word with their address, and *headers* that of the sums and scales of 8-bit
    weights. The columns of padding count.
    """
    if row["is_hybrid"]:
        row.read(weights, columns * padded(depth, DEPTH))
        row.read(headers, columns // STRIP * lstm_f32.HEADER_BYTES)
    else:
        row.read(weights, 4 * columns * depth)
