"""Bytes that fused float32 expansions, depthwise convolutions and projections read and write."""

from __future__ import annotations

from delegraph_numba_cpu.bounds.conv_f32 import (
    input_bytes,
    matrix_bytes,
    touch_outputs,
    touch_slopes,
    window_scratch,
)
from delegraph_numba_cpu.bounds.depthwise_conv_f32 import channel_bytes
from delegraph_numba_cpu.bounds.rules import Touched, rule
from delegraph_numba_cpu.instructions.conv_f32 import HEIGHTS
from delegraph_numba_cpu.instructions.inverted_residual_f32 import INVERTED_RESIDUAL


@rule(INVERTED_RESIDUAL)
def inverted_residual(row: Touched) -> None:
    chunk, width = min(row["chunk"], row["out_h"]), row["out_w"]
    _ring(row, chunk)
    row.read("weight", channel_bytes(row))
    pixels = 8 * (width + HEIGHTS[row.vector_bytes])
    taps = 8 * chunk * row["tap_rows"] * row["tap_columns"]
    row.within("the tables of taps", taps, row["rows_at"])
    row.within("the table of pixels", row["rows_at"] + pixels, row["result_at"])
    row.within("a pixel between", 4 * row["columns"], row["pitch"])
    row.scratch(row["result_at"] + chunk * width * row["pitch"])
    _projection(row, chunk)
    _expansion(row)


def _ring(row: Touched, chunk: int) -> None:
    """Declare the bytes of the ring buffer: padded rows of pixels, and a row of zeros.

    The row computes *chunk* output rows at a time.
    """
    rows, size = row["ring_rows"], row["row"]
    row.require(rows >= (chunk - 1) * row["stride_h"] + row["span"], "the ring has rows enough")
    row.within("a padded row", row["left"] + row["copied"], size)
    made = (row["expand_out_w"] - 1) * row["expand_pitch"] + _pixel_bytes(row)
    row.within("a row of the ring", row["left"] + made, size)
    reach = (row["out_w"] - 1) * row["stride_column"] + 4 * row["columns"]
    row.within("a window", reach + (row["tap_columns"] - 1) * row["tap_column"], size)
    row.write("ring", row.workers * (rows + 1) * size)


def _pixel_bytes(row: Touched) -> int:
    """Return the number of bytes of an expanded or copied pixel."""
    return 4 * row["expand_columns"] if row.has("expand_weight") else row["expand_tap_bytes"]


def _projection(row: Touched, chunk: int) -> None:
    for name in ("images", "out_h", "out_w"):
        row.require(row[f"project_{name}"] == row[name], f"both parts have the same {name}")
    row.require(not row["project_padded_at"], "single pixels need no padding")
    reach = (row["out_w"] - 1) * row["project_stride_column"] + row["project_tap_bytes"]
    down = (chunk - 1) * row["project_stride_row"]
    row.within("what is projected", reach + down, chunk * row["out_w"] * row["pitch"])
    row.read("project_weight", matrix_bytes(row, "project_"))
    touch_slopes(row, "project_")
    row.scratch(window_scratch(row, "project_", chunk, 1), "project_")
    touch_outputs(row, "project_", chunk)


def _expansion(row: Touched) -> None:
    if not row.has("expand_weight"):
        rows = row["images"] * row["in_h"]
        reach = row["expand_out_w"] * row["expand_tap_bytes"]
        row.read("expand_x", (rows - 1) * row["expand_in_row"] + reach)
        return
    for name, made in (("images", "expand_images"), ("in_h", "expand_out_h")):
        row.require(row[name] == row[made], f"both parts have the same {name}")
    row.read("expand_x", input_bytes(row, "expand_", row["expand_tap_bytes"]))
    row.read("expand_weight", matrix_bytes(row, "expand_"))
    touch_slopes(row, "expand_")
    rows = row["ring_rows"]
    row.scratch(window_scratch(row, "expand_", rows, rows), "expand_")
