"""Bytes that rows of L2_NORMALIZATION read and write; for float32 rows see ``softmax.py``."""

from __future__ import annotations

from delegraph_numba_cpu.bounds.rules import Touched, rule
from delegraph_numba_cpu.bounds.softmax import float_rows
from delegraph_numba_cpu.instructions.l2_normalization import (
    L2_NORMALIZATION,
    L2_NORMALIZATION_8_BIT,
)

rule(L2_NORMALIZATION)(float_rows)


@rule(L2_NORMALIZATION_8_BIT)
def byte_rows(row: Touched) -> None:
    row.loops(row["rows"], row["length"])
    size = row["rows"] * row["length"]
    row.read("source", size)
    row.write("target", size)
