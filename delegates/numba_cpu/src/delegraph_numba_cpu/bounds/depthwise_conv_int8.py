"""Bytes that depthwise convolutions of 8-bit integers read and write."""

from __future__ import annotations

from delegraph_numba_cpu.bounds.rules import Touched, rule, steps
from delegraph_numba_cpu.instructions import depthwise_conv_int8 as instructions
from delegraph_numba_cpu.instructions.conv_int8 import HEADER_BYTES


@rule(instructions.DEPTHWISE)
def depthwise(row: Touched) -> None:
    windows, taps = row.record("windows"), row.record("taps")
    row.loops(row["rows"], windows["out_width"], windows["channels"])
    row.read("x", depthwise_input(row, windows))
    row.write("y", row["rows"] * windows["out_width"] * windows["channels"])
    row.scratch(touch_taps(windows, taps))


def depthwise_input(row: Touched, windows: Touched) -> int:
    size = windows["height"] * windows["width"] * windows["channels"]
    return -(-row["rows"] // windows["out_height"]) * size


def touch_taps(windows: Touched, taps: Touched) -> int:
    """Declare the weights that an 8-bit depthwise convolution reads.

    Args:
        windows: record that describes the geometry of the windows.
        taps: record that describes the weights, with their addresses.

    Returns:
        The number of scratch bytes that an output row needs.
    """
    channels, count = taps["channels"], taps["count"]
    windows.require(windows["channels"] == channels, "weights are for all channels")
    windows.require(windows["left"] >= 0, "a packed line begins with its padding")
    if taps["is_paired"]:
        names = ("kernel_h", "kernel_w", "stride_w", "dilation_w", "out_width")
        are_paired = instructions.has_pairs(*(windows[name] for name in names))
        windows.require(are_paired, "weights of these windows are in pairs")
        paired = instructions.paired_words(windows["kernel_h"], windows["kernel_w"])
        taps.require(count == paired, "pairs hold all taps")
    columns, groups = _line_columns(windows), -(-windows["kernel_h"] // 4)
    taps.read("offsets", 8 * count)
    offsets = taps.table("offsets")[:count]
    reach = (windows["out_width"] - 1) * windows["stride_w"] + int(offsets.max(initial=0))
    are_inside = (
        reach < (taps["plane_columns"] or columns) * groups and int(offsets.min(initial=0)) >= 0
    )
    windows.require(are_inside, "taps are in packed lines")
    in_planes = taps["plane_columns"] != 0
    blocks_of_16 = 4 if in_planes else -(-channels // 16)
    taps.require(taps["block_bytes"] == 64 * count, "blocks hold all taps")
    taps.read("weights", blocks_of_16 * 64 * count)
    taps.read("headers", blocks_of_16 * HEADER_BYTES)
    taps.finish()
    if in_planes:
        _check_planes(windows, taps["plane_columns"], columns)
        planes = 4 * (64 + steps(groups, taps["plane_columns"], channels))
        return 64 + 4 * channels * windows["out_width"] + planes
    lanes = 64 if channels >= 64 else 16
    return 64 + 4 * lanes * (windows["out_width"] + steps(groups, columns))


def _check_planes(windows: Touched, plane_columns: int, columns: int) -> None:
    """Check that lines of which *columns* are read can be packed in planes of *plane_columns*."""
    channels = windows["channels"]
    is_level = windows.vector_bytes == instructions.PLANE_LEVEL_BYTES
    windows.require(is_level, "kernels of this level read planes")
    windows.require(channels in instructions.PLANE_CHANNELS, "planes are of 16 or 32 channels")
    found = instructions.plane_columns(columns, channels)
    windows.require(plane_columns == found, "planes have all columns")
    windows.require(windows["stride_w"] == 1, "pixels in planes are adjacent")
    is_whole = windows["width"] * channels % 64 == windows["out_width"] * channels % 64 == 0
    windows.require(is_whole, "rows are whole units")
    windows.require(windows["left"] + windows["width"] <= columns, "rows are in planes")


def _line_columns(windows: Touched) -> int:
    across = (windows["out_width"] - 1) * windows["stride_w"]
    return across + (windows["kernel_w"] - 1) * windows["dilation_w"] + 1


@rule(instructions.REPEAT)
def repeat(row: Touched) -> None:
    row.loops(row["pixels"], row["channels"], row["times"])
    row.read("x", row["pixels"] * row["channels"])
    row.write("y", row["pixels"] * row["channels"] * row["times"])
