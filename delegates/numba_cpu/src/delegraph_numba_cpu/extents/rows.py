"""What rows touch whose kernels go through the elements of tensors one after another."""

from __future__ import annotations

from delegraph_numba_cpu.blocks import arg_min_max, reductions, softmax, svdf
from delegraph_numba_cpu.blocks.l2_normalization import L2_NORMALIZATION
from delegraph_numba_cpu.extents.touched import Touched, rule

KIND_BYTES = {"FLOAT32": 4, "INT8": 1, "UINT8": 1, "INT32": 4}


@rule(softmax.SOFTMAX, softmax.LOG_SOFTMAX, L2_NORMALIZATION)
def float_rows(row: Touched) -> None:
    size = 4 * row["rows"] * row["length"]
    row.read("source", size)
    row.write("target", size)
    lanes = row.vector_bytes if row.vector_bytes == 64 else row.vector_bytes // 2
    row.scratch(8 * lanes)  # the end of a row before and after


@rule(softmax.SOFTMAX_8_BIT)
def byte_rows(row: Touched) -> None:
    _rows_of_bytes(row, 1)


@rule(softmax.SOFTMAX_8_BIT_TO_INT16)
def byte_rows_to_int16(row: Touched) -> None:
    _rows_of_bytes(row, 2)


def _rows_of_bytes(row: Touched, itemsize: int) -> None:
    size = row["rows"] * row["length"]
    row.read("source", size)
    row.write("target", itemsize * size)
    row.read("table", 4 * 256)


@rule(softmax.SOFTMAX_INT16)
def int16_rows(row: Touched) -> None:
    size = 2 * row["rows"] * row["length"]
    row.require(row["length"] <= softmax.LONGEST_INT16_ROW, "sums have 31 bits")
    row.read("source", size)
    row.write("target", size)
    for name in ("exponentials", "reciprocals"):
        row.read(name, 8 * softmax.INTERPOLATION_POINTS)


def _reduction(row: Touched, source: int, target: int) -> None:
    """Say what a reduction touches whose elements have so many bytes."""
    outputs = row["outer"] * row["inner"]
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
    row.read("source", 4 * count)
    row.write("target", count)


@rule(reductions.SCALE_REAL)
def scale_real(row: Touched) -> None:
    row.read("source", 4 * row["count"])
    row.write("target", row["count"])


@rule(arg_min_max.ARG)
def arg(row: Touched) -> None:
    sizes = {code: KIND_BYTES[name] for name, code in arg_min_max.ARG_KINDS.items()}
    outer, length, inner = row["outer"], row["length"], row["inner"]
    row.require(length > 0, "there is an element to be found")
    row.read("source", outer * length * inner * sizes[row["kind"]])
    row.write("target", outer * inner * (8 if row["wide"] else 4))


@rule(svdf.INTEGER)
def svdf_integer(row: Touched) -> None:
    filters, window, batch = row["units"] * row["rank"], row["window"], row["batch"]
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
    row.require(window > 0, "a filter keeps a result")
    row.read("products", 4 * batch * filters)
    row.read("times", 4 * filters * window)
    row.read("bias", 4 * row["units"])
    row.write("state", 4 * batch * filters * window)
    row.write("target", 4 * batch * row["units"])
