"""Bytes that rows of pooling read and write."""

from __future__ import annotations

from delegraph_numba_cpu.bounds.rules import Rule, Touched, rule
from delegraph_numba_cpu.instructions import pooling


def _pool(itemsize: int) -> Rule:
    def touch(row: Touched) -> None:
        pixel = row["channels"] * itemsize
        images = -(-row["rows"] // row["out_height"])
        row.require(row["window_height"] > 0 < row["window_width"], "a window has pixels")
        row.loops(row["rows"], row["out_width"], row["channels"])
        row.read("source", images * row["height"] * row["width"] * pixel)
        row.write("target", row["rows"] * row["out_width"] * pixel)

    return touch


rule(pooling.MAX_F32, pooling.MEAN_F32)(_pool(4))
rule(pooling.MAX_S8, pooling.MAX_U8, pooling.MEAN_S8, pooling.MEAN_U8)(_pool(1))
rule(pooling.MAX_S16, pooling.MEAN_S16)(_pool(2))
