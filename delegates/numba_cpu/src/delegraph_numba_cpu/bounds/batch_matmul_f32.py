"""Bytes that products of float32 rows and matrices read and write."""

from __future__ import annotations

from delegraph_numba_cpu.bounds.rules import Touched, rule
from delegraph_numba_cpu.instructions.batch_matmul_f32 import DOTS, SUMS


@rule(DOTS, SUMS)
def rows_times_matrices(row: Touched) -> None:
    images, rows = row["images"], row["rows"]
    depth, columns = row["depth"], row["columns"]
    row.require(min(images, rows, depth, columns) > 0, "matrices have elements")
    row.loops(images, rows, columns)
    row.loops(depth, columns)
    for name, size in (("x", 4 * rows * depth), ("weights", 4 * depth * columns)):
        row.require(row[f"{name}_image"] in (0, size), f"{name}: one for all, or one for each")
        row.read(name, (images - 1) * row[f"{name}_image"] + size)
    row.write("y", 4 * images * rows * columns)
