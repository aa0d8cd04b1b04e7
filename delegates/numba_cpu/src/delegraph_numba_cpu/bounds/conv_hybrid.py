"""Bytes that products of float activations and 8-bit weights read and write."""

from __future__ import annotations

from delegraph_numba_cpu.bounds.conv_int8 import image_bytes
from delegraph_numba_cpu.bounds.rules import Touched, rule
from delegraph_numba_cpu.instructions import conv_hybrid as instructions
from delegraph_numba_cpu.instructions import conv_int8


def _measured(row: Touched) -> int:
    """Declare the float activations that the kernel call reads.

    Returns:
        The number of bytes of the ranges (smallest and largest value) measured in the activations.
    """
    rows, size, pieces = row["rows"], row["size"], row["pieces"]
    length = (-(-size // pieces) + 63) // 64 * 64
    row.loops(rows, size)
    row.loops(rows, pieces)
    row.require((pieces - 1) * length < max(size, 1), "each piece has values")
    row.read("x", 4 * rows * size)
    return 8 * rows * pieces


@rule(instructions.MEASURE)
def measure(row: Touched) -> None:
    row.write("ranges", _measured(row))


@rule(instructions.QUANTIZE)
def quantize(row: Touched) -> None:
    row.read("ranges", _measured(row))
    row.write("scales", 8 * row["rows"])
    row.write("y", (row["rows"] - 1) * row["row_bytes"] + row["size"])


@rule(instructions.ROUND)
def round_rows(row: Touched) -> None:
    row.read("ranges", _measured(row))
    row.write("y", 4 * row["rows"] * row["size"])


@rule(instructions.MULTIPLY)
def multiply(row: Touched) -> None:
    windows = row.record("windows")
    pixels, outputs, row_bytes = row["pixels"], row["outputs"], windows["row_bytes"]
    _check_weights(row, row_bytes)
    row.loops(pixels, outputs)
    parts = row["row_tiles"] * row["column_tiles"]
    row.require(row["column_tiles"] > 0 and parts == row.tiles, "each tile is a part of the result")
    rows = max(row["step"], instructions.ROWS) * row_bytes
    if row["layout"] == instructions.WINDOWED:
        row.read("x", image_bytes(windows, pixels))
    else:
        row.read("x", (pixels + instructions.ROWS - 1) * row_bytes)
        rows = 0
    row.read("scales", 8 * -(-pixels // row["image_pixels"]))
    groups = -(-outputs // 64)  # some blocks of the last group are computed and dropped
    row.read("weights", groups * 4 * row["block_bytes"])
    row.read("headers", groups * 4 * instructions.HEADER_BYTES)
    row.write("y", 4 * pixels * outputs)
    row.scratch(conv_int8.ACC_BYTES + 256 + rows)


def _check_weights(row: Touched, row_bytes: int) -> None:
    form, parts, steps = row["form"], row["parts"], row["steps"]
    row.require(
        form in (instructions.BYTES, instructions.NIBBLES, instructions.PARTS),
        "a known form of weights",
    )
    row.require(
        steps > 0 and (parts > 0 if form == instructions.PARTS else parts == 1), "parts, steps"
    )
    inputs = 4 if form == instructions.BYTES else 8
    row.require(parts * steps * inputs == row_bytes, "windows are as long as weights")
    scales = instructions.SCALE_BYTES // 4 if form == instructions.PARTS else 0
    row.require(row["block_bytes"] == parts * (64 * steps + scales), "blocks hold all steps")
