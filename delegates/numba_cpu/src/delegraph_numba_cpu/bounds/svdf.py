"""Bytes that SVDF layers read and write."""

from __future__ import annotations

from delegraph_numba_cpu.bounds.rules import Touched, rule
from delegraph_numba_cpu.instructions import svdf


@rule(svdf.INTEGER)
def svdf_integer(row: Touched) -> None:
    filters, window, batch = row["units"] * row["rank"], row["window"], row["batch"]
    row.loops(batch, row["units"], row["rank"], window)
    row.require(window > 0, "a filter keeps a result")
    row.read("source", batch * row["inputs"])
    row.read("features", filters * row["inputs"])
    row.read("times", 2 * filters * window)
    row.read("bias", 4 * row["units"])
    row.read("sums", 4 * filters)
    row.write("state", 2 * batch * filters * window)
    row.write("target", batch * row["units"])


@rule(svdf.FLOAT)
def svdf_float(row: Touched) -> None:
    filters, window, batch = row["units"] * row["rank"], row["window"], row["batch"]
    row.loops(batch, row["units"], row["rank"], window)
    row.require(window > 0, "a filter keeps a result")
    row.read("products", 4 * batch * filters)
    row.read("times", 4 * filters * window)
    row.read("bias", 4 * row["units"])
    row.write("state", 4 * batch * filters * window)
    row.write("target", 4 * batch * row["units"])
