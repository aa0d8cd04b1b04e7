"""Bytes that reductions read and write."""

from __future__ import annotations

from delegraph_numba_cpu.bounds.rules import Touched, rule
from delegraph_numba_cpu.instructions import reductions


def _reduction(row: Touched, source: int, target: int) -> None:
    """Declare, for the bounds check, the bytes that a reduction reads and writes.

    Args:
        row: kernel call of the reduction that is being checked.
        source: number of bytes of an input element.
        target: number of bytes of an output element.
    """
    outputs = row["outer"] * row["inner"]
    row.loops(row["outer"], row["length"], row["inner"])
    row.read("source", outputs * row["length"] * source)
    row.write("target", outputs * target)


@rule(reductions.SUM_F32, reductions.PRODUCT_F32, reductions.MAX_F32, reductions.INT32)
def four_bytes(row: Touched) -> None:
    """Declare, for the bounds check, the bytes that a reduction of 4-byte elements uses."""
    _reduction(row, 4, 4)


@rule(reductions.SUM_BYTES)
def sum_bytes(row: Touched) -> None:
    """Declare, for the bounds check, the bytes that a *row* of ``SUM_BYTES`` reads and writes."""
    _reduction(row, 1, 4)


@rule(reductions.MAX_BYTES)
def max_bytes(row: Touched) -> None:
    """Declare, for the bounds check, the bytes that a *row* of ``MAX_BYTES`` reads and writes."""
    _reduction(row, 1, 1)


@rule(reductions.SCALE)
def scale(row: Touched) -> None:
    """Declare, for the bounds check, the bytes that a *row* of ``SCALE`` reads and writes."""
    period = row["period"]
    row.require(period > 0, "a period has elements")
    count = -(-row["count"] // period) * period
    row.loops(count)
    row.read("source", 4 * count)
    row.write("target", count)


@rule(reductions.SCALE_REAL)
def scale_real(row: Touched) -> None:
    """Declare, for the bounds check, the bytes that a *row* of ``SCALE_REAL`` reads and writes."""
    row.loops(row["count"])
    row.read("source", 4 * row["count"])
    row.write("target", row["count"])
