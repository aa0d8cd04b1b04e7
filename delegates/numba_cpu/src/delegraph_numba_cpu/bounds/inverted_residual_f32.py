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
from delegraph_numba_cpu.instructions.depthwise_conv_f32 import tile_pixels
from delegraph_numba_cpu.instructions.inverted_residual_f32 import INVERTED_RESIDUAL


@rule(INVERTED_RESIDUAL)
def inverted_residual(row: Touched) -> None:
    chunk, width = min(row["chunk"], row["out_h"]), row["out_w"]
    row.loops(row["images"], row["out_h"], row["project_out_w"], row["project_columns"])
    row.loops(row["ring_rows"], row["row"])
    row.loops(row["ring_rows"], row["expand_out_w"])
    _ring(row, chunk)
    row.read("weight", channel_bytes(row))
    pixels = 8 * (width + HEIGHTS[row.vector_bytes])
    taps = 8 * row["tap_rows"] * row["tap_columns"]
    tables = row["chunk"] + chunk if row["has_ends"] else chunk
    row.within("the tables of taps", tables * taps, row["rows_at"])
    row.within("the table of pixels", row["rows_at"] + pixels, row["result_at"])
    row.within("a pixel between", 4 * row["columns"], row["pitch"])
    results = row["result_at"] + chunk * width * row["pitch"]
    row.within("results of the depthwise convolution", results, row["ring_at"])
    row.scratch(row["ring_at"] + row["ring_rows"] * row["row"] + row["zeros"])
    _projection(row, chunk)
    _expansion(row)


def _ring(row: Touched, chunk: int) -> None:
    """Check that the ring buffer, which holds the last padded input rows, fits into its memory.

    The memory ends with a row of zeros, which stands for rows above and below the image. The kernel
    computes *chunk* output rows at a time.
    """
    rows, size = row["ring_rows"], row["row"]
    row.require(rows >= (chunk - 1) * row["stride_h"] + row["span"], "the ring has rows enough")
    row.require(row["column_tiles"] == 1, "tiles are rows")
    row.require(row["left"] >= 0, "a row begins with its zeros")
    row.within("a padded row", row["left"] + row["copied"], size)
    made = (row["expand_out_w"] - 1) * row["expand_pitch"] + _pixel_bytes(row)
    row.within("a row of the ring", row["left"] + made, size)
    if row["has_ends"]:
        _ends_of_rows(row)
    else:
        row.within("a window", _reach(row, row["out_w"]), min(size, row["zeros"]))


def _reach(row: Touched, outputs: int) -> int:
    """Return the number of bytes of a ring buffer's row that the first *outputs* windows read."""
    before = (outputs - 1) * row["stride_column"] + (row["tap_columns"] - 1) * row["tap_column"]
    return before + 4 * row["columns"]


def _ends_of_rows(row: Touched) -> None:
    """Check that windows lie within their rows, if the ring buffer holds only the ends of rows.

    The last register tile of a row reads its windows from the ring buffer, and so does the first
    one if the row is padded. All other register tiles read windows of the input. The row of zeros
    must be long enough for both kinds.
    """
    width, step = row["out_w"], row["tap_column"]
    height = tile_pixels(width, HEIGHTS[row.vector_bytes])
    row.require(not row.has("expand_weight"), "computed rows are whole")
    row.require(row["tap_columns"] in (3, 5), "windows are 3 or 5 wide")
    row.require(row["stride_column"] in (step, 2 * step), "taps of windows side by side are shared")
    row.require(row["columns"] >= row.vector_bytes // 4, "channels fill a register")
    row.require(width >= height, "a row fills a register tile")
    size, left = row["row"], row["left"]
    row.within("a window of the last tile", row["last_at"] + _reach(row, height), size)
    row.require(left <= height * row["stride_column"], "tiles after the first begin in a row")
    reach = _reach(row, max(width - 1, 0) // height * height)
    row.within("a window of the ring or the input", max(reach, size), row["zeros"])
    row.within("a window of the input", max(reach - left, 0), row["expand_in_row"])


def _pixel_bytes(row: Touched) -> int:
    """Return the number of bytes of a pixel in the ring buffer.

    The pixel is a result of the first convolution, or a copied input pixel if there is none.
    """
    return 4 * row["expand_columns"] if row.has("expand_weight") else row["expand_tap_bytes"]


def _projection(row: Touched, chunk: int) -> None:
    for name in ("images", "out_h"):
        row.require(row[f"project_{name}"] == row[name], f"both parts have the same {name}")
    row.require(not row["project_padded_at"], "single pixels need no padding")
    reach = (row["project_out_w"] - 1) * row["project_stride_column"] + row["project_tap_bytes"]
    down = (chunk - 1) * row["project_stride_row"]
    row.within("what is projected", reach + down, chunk * row["out_w"] * row["pitch"])
    row.read("project_weight", matrix_bytes(row, "project_"))
    touch_slopes(row, "project_")
    row.scratch(window_scratch(row, "project_", chunk, 1, row["project_tap_bytes"]), "project_")
    touch_outputs(row, "project_", chunk)


def _expansion(row: Touched) -> None:
    if not row.has("expand_weight"):
        rows = row["images"] * row["in_h"]
        reach = (row["expand_out_w"] - 1) * row["expand_stride_column"] + row["expand_tap_bytes"]
        reach += row["expand_left"]
        if row["has_ends"]:
            reach = max(reach, row["expand_in_row"])
        row.read("expand_x", (rows - 1) * row["expand_in_row"] + reach)
        return
    for name, made in (("images", "expand_images"), ("in_h", "expand_out_h")):
        row.require(row[name] == row[made], f"both parts have the same {name}")
    row.read("expand_x", input_bytes(row, "expand_", row["expand_tap_bytes"]))
    row.read("expand_weight", matrix_bytes(row, "expand_"))
    touch_slopes(row, "expand_")
    rows, tap_bytes = row["ring_rows"], row["expand_tap_bytes"]
    row.scratch(window_scratch(row, "expand_", rows, rows, tap_bytes), "expand_")
