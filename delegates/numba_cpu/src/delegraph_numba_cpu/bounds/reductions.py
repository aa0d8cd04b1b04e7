"""Bytes that reductions read and write."""

from __future__ import annotations

from delegraph_numba_cpu.bounds.rules import Touched, rule
from delegraph_numba_cpu.instructions import reductions


def _reduction(row: Touched, source: int, target: int) -> None:
    """Declare the accesses of a reduction of elements of *source* bytes to *target* bytes."""
    outputs = row["outer"] * row["inner"]
    row.loops(row["outer"], row["length"], row["inner"])
    row.read("source", outputs * row["length"] * source)
    row.write("target", outputs * target)


@rule(reductions.SUM_F32, reductions.PRODUCT_F32, reductions.MAX_F32, reductions.INT32)
def four_bytes(row: Touched) -> None:
    _reduction(row, 4, 4)


@rule(reductions.SUM_BYTES)
def sum_bytes(row: Touched) -> None:
    _reduction(row, 1, 4)


@rule(reductions.MAX_BYTES)
def max_bytes(row: Touched) -> None:
    _reduction(row, 1, 1)


@rule(reductions.SCALE)
def scale(row: Touched) -> None:
    period = row["period"]
    row.require(period > 0, "a period has elements")
    count = -(-row["count"] // period) * period
    row.loops(count)
    row.read("source", 4 * count)
    row.write("target", count)


@rule(reductions.SCALE_REAL)
def scale_real(row: Touched) -> None:
    row.loops(row["count"])
    row.read("source", 4 * row["count"])
    row.write("target", row["count"])
