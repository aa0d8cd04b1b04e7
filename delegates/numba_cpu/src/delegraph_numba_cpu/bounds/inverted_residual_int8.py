"""Bytes that fused convolutions of 8-bit integers read and write."""

from __future__ import annotations

from delegraph_numba_cpu.bounds.conv_int8 import (
    LEAST_ROWS,
    accumulator_bytes,
    check_depth,
    input_bytes,
    product_scratch,
    touch_weights,
)
from delegraph_numba_cpu.bounds.depthwise_conv_int8 import depthwise_input, touch_taps
from delegraph_numba_cpu.bounds.rules import Touched, rule
from delegraph_numba_cpu.instructions.inverted_residual_int8 import STRIP


@rule(STRIP)
def strip(row: Touched) -> None:
    windows, taps, matrix = (row.record(name) for name in ("windows", "taps", "matrix"))
    channels, width = windows["channels"], windows["out_width"]
    row.loops(row["rows"], width, matrix["outputs"])
    row.require(row["together"] > 0, "rows are projected together")
    row.write("y", row["rows"] * width * matrix["outputs"])
    touch_weights(matrix, 1)
    row.require(matrix["depth"] == channels, "weights are for all channels")
    row.within("weights", channels, 4 * matrix["steps"])
    pixels = row["together"] * width
    row.within("the accumulators", accumulator_bytes(matrix["steps"]), row["sums"])
    row.within("the sums", row["sums"] + 4 * max(pixels, LEAST_ROWS), row["row"])
    between = row["row"] + (max(pixels, LEAST_ROWS) - 1) * channels + 4 * matrix["steps"]
    work = touch_taps(windows, taps)
    if not row.has("first_matrix"):
        row.within("the depthwise rows", between, row["work"])
        row.read("x", depthwise_input(row, windows))
    else:
        row.within("the depthwise rows", between, row["lines"])
        work = max(work, _first(row, windows))
    row.scratch(row["work"] + work)


def _first(row: Touched, windows: Touched) -> int:
    """Declare the bytes that the first of the fused convolutions reads.

    *windows* are those of the depthwise convolution. Return the number of scratch bytes.
    """
    first, matrix = row.record("first_windows"), row.record("first_matrix")
    check_depth(row, first, matrix)
    width, channels = windows["width"], windows["channels"]
    row.require(matrix["outputs"] == channels, "both convolutions have the same channels")
    span = (windows["kernel_h"] - 1) * windows["dilation_h"] + 1
    row.require(row["kept"] >= span, "a window's rows are kept")
    row.require(row["first_step"] > 0, "pixels are computed together")
    row.loops(row["kept"], width, channels)
    lines = row["lines"] + row["kept"] * width * channels
    row.within("the rows that are kept", lines, row["work"])
    images = -(-row["rows"] // windows["out_height"])
    row.read("x", input_bytes(first, row["first_layout"], images * windows["height"] * width))
    touch_weights(matrix, 1)
    return product_scratch(first, row["first_step"], row["first_layout"])
