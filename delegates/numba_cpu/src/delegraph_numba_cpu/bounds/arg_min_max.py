"""Bytes that rows of ARG_MAX and ARG_MIN read and write."""

from __future__ import annotations

from delegraph_numba_cpu.bounds.rules import Touched, rule
from delegraph_numba_cpu.instructions import arg_min_max

KIND_BYTES = {"FLOAT32": 4, "INT8": 1, "UINT8": 1, "INT32": 4}


@rule(arg_min_max.ARG)
def arg(row: Touched) -> None:
    sizes = {code: KIND_BYTES[name] for name, code in arg_min_max.ARG_KINDS.items()}
    outer, length, inner = row["outer"], row["length"], row["inner"]
    row.require(length > 0, "there is an element to be found")
    row.loops(outer, length, inner)
    row.read("source", outer * length * inner * sizes[row["kind"]])
    row.write("target", outer * inner * (8 if row["wide"] else 4))
