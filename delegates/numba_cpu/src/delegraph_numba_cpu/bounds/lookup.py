"""Bytes that rows of ``instructions/lookup.py`` read and write."""

from __future__ import annotations

from delegraph_numba_cpu.bounds.rules import Touched, rule
from delegraph_numba_cpu.instructions import lookup as instructions
from delegraph_numba_cpu.instructions.executor import HEADER_WORDS


@rule(instructions.LOOK_UP)
def look_up(row: Touched) -> None:
    rows, width, bits, block = row["rows"], row["width"], row["bits"], row["block"]
    row.require(bits in (4, 8), "integers have 4 bits or 8")
    row.require(row["scale_bytes"] in (2, 4), "scales have 2 bytes or 4")
    row.require(rows > 0 and width > 0 and row["table_rows"] > 0, "there are rows")
    row.require(block > 0 and width % block == 0, "blocks divide rows")
    row.require(block * bits % 8 == 0 or block == width, "blocks begin at whole bytes")
    row.loops(rows, width)
    last = row["table_rows"] - 1
    row.read("table", last * width * bits // 8 + -(-width * bits // 8))
    row.read("scales", last * row["row_scales"] + width // block * row["scale_bytes"])
    row.read("positions", 4 * rows)
    row.write("target", 4 * rows * width)
    row.write("report", 8 * HEADER_WORDS)
