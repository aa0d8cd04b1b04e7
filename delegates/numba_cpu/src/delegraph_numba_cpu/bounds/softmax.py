"""Bytes that rows of SOFTMAX and LOG_SOFTMAX read and write."""

from __future__ import annotations

from delegraph_numba_cpu.bounds.rules import Touched, rule
from delegraph_numba_cpu.instructions import softmax


@rule(softmax.SOFTMAX, softmax.LOG_SOFTMAX)
def float_rows(row: Touched) -> None:
    row.loops(row["rows"], row["length"])
    size = 4 * row["rows"] * row["length"]
    row.read("source", size)
    row.write("target", size)
    lanes = row.vector_bytes if row.vector_bytes == 64 else row.vector_bytes // 2
    row.scratch(8 * lanes)  # the end of a row before and after


@rule(softmax.SOFTMAX_8_BIT)
def byte_rows(row: Touched) -> None:
    _rows_of_bytes(row, 1)


@rule(softmax.LOG_SOFTMAX_8_BIT)
def log_byte_rows(row: Touched) -> None:
    row.loops(row["rows"], row["length"])
    size = row["rows"] * row["length"]
    row.read("source", size)
    row.write("target", size)
    row.read("table", 4 * 256)


@rule(softmax.SOFTMAX_8_BIT_TO_INT16)
def byte_rows_to_int16(row: Touched) -> None:
    _rows_of_bytes(row, 2)


def _rows_of_bytes(row: Touched, itemsize: int) -> None:
    row.loops(row["rows"], row["length"])
    size = row["rows"] * row["length"]
    row.read("source", size)
    row.write("target", itemsize * size)
    row.read("table", 4 * 256)
    row.scratch(4 * row["length"])


@rule(softmax.SOFTMAX_INT16)
def int16_rows(row: Touched) -> None:
    row.loops(row["rows"], row["length"])
    size = 2 * row["rows"] * row["length"]
    row.require(row["length"] <= softmax.LONGEST_INT16_ROW, "sums have 31 bits")
    row.read("source", size)
    row.write("target", size)
    for name in ("exponentials", "reciprocals"):
        row.read(name, 8 * softmax.INTERPOLATION_POINTS)
