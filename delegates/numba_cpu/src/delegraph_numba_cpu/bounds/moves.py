"""Bytes that rows of ``instructions/moves.py`` read and write."""

from __future__ import annotations

import math

from delegraph_numba_cpu.bounds.rules import Touched, rule
from delegraph_numba_cpu.instructions import moves as instructions
from delegraph_numba_cpu.instructions.executor import HEADER_WORDS

SOURCE, TARGET = 1, 2
"""Positions of the source's and the target's stride in the numbers that describe a loop."""


@rule(instructions.COPY)
def copy(row: Touched) -> None:
    row.loops(row["bytes"])
    row.read("source", row["bytes"])
    row.write("target", row["bytes"])


def _reach(row: Touched, side: int) -> tuple[int, int]:
    """Return the range of bytes that the nested loops of a copy access: first, and after the last.

    Both are offsets in bytes from the address of *side*: ``SOURCE`` for the bytes that are read,
    ``TARGET`` for those that are written.
    """
    table = row.table("loops")[: instructions.NEST_WORDS * row["depth"]].tolist()
    loops = list(zip(*[iter(table)] * instructions.NEST_WORDS, strict=False))
    row.require(len(loops) == row["depth"] >= 2, "a nest has two loops or more, all in the table")
    row.require(all(loop[0] > 0 for loop in loops), "loops have steps")
    row.loops(*(loop[0] for loop in loops))
    row.require(row["rows"] == math.prod(loop[0] for loop in loops[:-1]), "rows are those of loops")
    row.require(row["unit"] in (1, 2, 4, 8), "elements have 1, 2, 4 or 8 bytes")
    ends = [(loop[0] - 1) * loop[side] for loop in loops]
    return sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends) + row["unit"]


def _span(limits: list[int]) -> int:
    """Return the largest offset in bytes that positions computed by the model can add.

    *limits* has, for each axis, the largest position and the number of bytes that a position
    counts.
    """
    return sum(count * step for count, step in zip(limits[::2], limits[1::2], strict=True))


@rule(instructions.NEST)
def nest(row: Touched) -> None:
    row.require(row["grain"] > 0, "tiles have rows")
    start, stop = _reach(row, SOURCE)
    row.read("source", stop, start)
    start, stop = _reach(row, TARGET)
    row.write("target", stop, start)


@rule(instructions.UPDATE)
def update(row: Touched) -> None:
    start, stop = _reach(row, SOURCE)
    row.read("source", stop, start)
    limits = row.table("limits")[: 2 * row["rank"]].tolist()
    row.require(len(limits) == 2 * row["rank"] and min(limits, default=0) >= 0, "limits are there")
    row.require(row["index_bytes"] in (4, 8), "positions have 4 bytes or 8")
    row.read("starts", row["rank"] * row["index_bytes"])
    start, stop = _reach(row, TARGET)
    row.write("target", stop + _span(limits), start)


@rule(instructions.FILL)
def fill(row: Touched) -> None:
    start, stop = _reach(row, TARGET)
    row.write("target", stop, start)


@rule(instructions.PICK)
def pick(row: Touched) -> None:
    rows, inner, run = row["rows"], row["inner"], row["run"]
    row.loops(rows, run)
    row.require(inner > 0, "there are runs")
    outer = row.table("outer")[: -(-rows // inner)]
    offsets = row.table("offsets")[: min(inner, rows)]
    row.require(
        len(outer) * inner >= rows and len(offsets) == min(inner, rows), "tables name every run"
    )
    first = int(outer.min()) + int(offsets.min())
    row.read("source", int(outer.max()) + int(offsets.max()) + run, first)
    row.write("target", rows * run)


@rule(instructions.GATHER)
def gather(row: Touched) -> None:
    tuples, slices, rows, depth = row["tuples"], row["slices"], row["rows"], row["depth"]
    row.loops(rows, row["run"])
    limits = row.table("limits")[: 2 * depth].tolist()
    row.require(len(limits) == 2 * depth and min(limits, default=0) >= 0, "limits are there")
    row.require(row["index_bytes"] in (2, 4, 8), "positions have 2 bytes, 4 or 8")
    row.require(rows > 0 and rows % (tuples * slices) == 0, "each slice has all tuples")
    row.read("positions", rows // slices * depth * row["index_bytes"])
    if all(limits[::2]):
        last = _span(limits) - sum(limits[1::2]) + (rows // tuples - 1) * row["slab"]
        row.read("source", last + row["run"] if row["run"] else 0)
    else:  # there is no position that would be read
        row.read("source", 0)
    row.write("target", rows * row["run"])
    row.write("report", 8 * HEADER_WORDS)


@rule(instructions.RECODE)
def recode(row: Touched) -> None:
    row.loops(row["runs"], row["run"])
    row.read("source", row["runs"] * row["run"])
    row.write("target", (row["runs"] - 1) * row["step"] + row["run"])
    row.read("table", 256)
