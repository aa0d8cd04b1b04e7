"""Bytes that rows of ``instructions/moves.py`` read and write."""

from __future__ import annotations

import numpy as np

from delegraph_numba_cpu.bounds.rules import Touched, rule
from delegraph_numba_cpu.instructions import moves as instructions
from delegraph_numba_cpu.instructions.executor import HEADER_WORDS

SOURCE, TARGET = 1, 2
"""Columns of a loop."""


@rule(instructions.COPY)
def copy(row: Touched) -> None:
    row.read("source", row["bytes"])
    row.write("target", row["bytes"])


def _reach(row: Touched, side: int) -> tuple[int, int]:
    """Return the first byte and the end of a walk through memory."""
    loops = row.table("loops")[: instructions.NEST_WORDS * row["depth"]].reshape(
        -1, instructions.NEST_WORDS
    )
    row.require(len(loops) == row["depth"] >= 2, "a nest has two loops or more, all in the table")
    steps, jumps = loops[:, 0], loops[:, side]
    row.require(bool((steps > 0).all()), "loops have steps")
    ends = (steps - 1) * jumps
    return int(np.minimum(ends, 0).sum()), int(np.maximum(ends, 0).sum()) + row["unit"]


@rule(instructions.NEST)
def nest(row: Touched) -> None:
    start, stop = _reach(row, SOURCE)
    row.read("source", stop, start)
    start, stop = _reach(row, TARGET)
    row.write("target", stop, start)


@rule(instructions.UPDATE)
def update(row: Touched) -> None:
    start, stop = _reach(row, SOURCE)
    row.read("source", stop, start)
    limits = row.table("limits")[: 2 * row["rank"]].reshape(-1, 2)
    row.require(len(limits) == row["rank"] and bool((limits >= 0).all()), "positions have limits")
    row.require(row["index_bytes"] in (4, 8), "positions have 4 bytes or 8")
    row.read("starts", row["rank"] * row["index_bytes"])
    start, stop = _reach(row, TARGET)
    row.write("target", stop + int((limits[:, 0] * limits[:, 1]).sum()), start)


@rule(instructions.FILL)
def fill(row: Touched) -> None:
    start, stop = _reach(row, TARGET)
    row.write("target", stop, start)


@rule(instructions.PICK)
def pick(row: Touched) -> None:
    rows, inner, run = row["rows"], row["inner"], row["run"]
    outer = row.table("outer")[: -(-rows // inner)]
    offsets = row.table("offsets")[: min(inner, rows)]
    row.require(
        len(outer) * inner >= rows and len(offsets) == min(inner, rows), "tables name every run"
    )
    row.read("source", int(outer.max() + offsets.max()) + run, int(outer.min() + offsets.min()))
    row.write("target", rows * run)


@rule(instructions.GATHER)
def gather(row: Touched) -> None:
    tuples, slices, rows, depth = row["tuples"], row["slices"], row["rows"], row["depth"]
    limits = row.table("limits")[: 2 * depth].reshape(-1, 2)
    row.require(len(limits) == depth and bool((limits >= 0).all()), "positions have limits")
    row.require(row["index_bytes"] in (2, 4, 8), "positions have 2 bytes, 4 or 8")
    row.require(rows > 0 and rows % (tuples * slices) == 0, "each slice has all tuples")
    row.read("positions", rows // slices * depth * row["index_bytes"])
    if limits[:, 0].all():
        last = int(((limits[:, 0] - 1) * limits[:, 1]).sum()) + (rows // tuples - 1) * row["slab"]
        row.read("source", last + row["run"] if row["run"] else 0)
    else:  # there is no position that would be read
        row.read("source", 0)
    row.write("target", rows * row["run"])
    row.write("report", 8 * HEADER_WORDS)


@rule(instructions.RECODE)
def recode(row: Touched) -> None:
    row.read("source", row["runs"] * row["run"])
    row.write("target", (row["runs"] - 1) * row["step"] + row["run"])
    row.read("table", 256)
