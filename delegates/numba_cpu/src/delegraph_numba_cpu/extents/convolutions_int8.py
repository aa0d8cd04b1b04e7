"""What convolutions and matrix products of 8-bit integers touch."""

from __future__ import annotations

from delegraph_numba_cpu.blocks import conv_int8 as blocks
from delegraph_numba_cpu.blocks import depthwise_conv_int8 as depthwise_blocks
from delegraph_numba_cpu.blocks.strips_int8 import STRIP
from delegraph_numba_cpu.extents.touched import Touched, rule

LEAST_ROWS = 16
"""Matrix rows that micro-kernels read where there are fewer."""


@rule(blocks.CONVOLVE)
def convolve(row: Touched) -> None:
    parts = row["row_tiles"] * row["column_tiles"]
    row.require(parts > 0 == row.tiles % parts, "tiles are divided among images")
    images, pixels = row.tiles // parts, row["pixels"]
    windows = row.record("windows")
    matrix = row.record("matrix", images, row["matrix_image"])
    _check_depth(row, windows, matrix)
    each = _input_bytes(windows, row["layout"], pixels)
    row.read("x", (images - 1) * row["in_image"] + each)
    row.write("y", images * pixels * matrix["outputs"])
    _weights(matrix, images if row["matrix_image"] else 1)
    row.scratch(_product_scratch(windows, row["step"]))


def _check_depth(row: Touched, windows: Touched, matrix: Touched) -> None:
    row.require(windows["row_bytes"] == 4 * matrix["steps"], "windows are as long as weights")
    row.require(matrix["depth"] <= windows["row_bytes"], "weights are as deep as they say")


def _input_bytes(windows: Touched, layout: int, pixels: int) -> int:
    """Return how much of an input is read for so many pixels of the output."""
    windows.finish()
    if layout != blocks.WINDOWED:
        return pixels * windows["row_bytes"]
    return image_bytes(windows, pixels)


def image_bytes(windows: Touched, pixels: int) -> int:
    """Return how large the images are of which so many pixels of the output are made."""
    each = windows["out_height"] * windows["out_width"]
    windows.require(each > 0 or not pixels, "images have pixels")
    taps = windows["kernel_h"] * windows["kernel_w"] * windows["channels"]
    windows.within("a window", taps, windows["row_bytes"])
    size = windows["height"] * windows["width"] * windows["channels"]
    return -(-pixels // max(each, 1)) * size


def _weights(matrix: Touched, images: int) -> None:
    """Say what is touched of weights and their headers."""
    count = images * -(-matrix["outputs"] // 16)
    matrix.require(matrix["block_bytes"] == 64 * matrix["steps"], "blocks hold all steps")
    matrix.read("weights", count * matrix["block_bytes"])
    matrix.read("headers", count * blocks.HEADER_BYTES)
    matrix.finish()


def _product_scratch(windows: Touched, step: int) -> int:
    """Return what a product takes of scratch memory: accumulators, sums, windows."""
    rows = max(step, LEAST_ROWS)
    laid_out = (4 * rows + 127) // 64 * 64 + rows * windows["row_bytes"]
    return _accumulators(windows["row_bytes"] // 4) + laid_out


def _accumulators(steps: int) -> int:
    """Return what accumulators and split rows take."""
    return blocks.ACC_BYTES + blocks.SPLIT_BYTES * steps


@rule(blocks.PACK_STACK)
def pack_stack(row: Touched) -> None:
    images, outputs, depth = row["images"], row["outputs"], row["depth"]
    count, steps = -(-outputs // 16), -(-depth // 4)
    size = 8 * len(blocks.MATRIX.names)
    row.read("source", images * outputs * depth)
    row.read("header", count * blocks.HEADER_BYTES)
    row.read("matrix", size)
    row.write("matrices", images * size)
    row.write("headers", images * count * blocks.HEADER_BYTES)
    row.write("weights", images * count * 64 * steps)


@rule(depthwise_blocks.DEPTHWISE)
def depthwise(row: Touched) -> None:
    windows, taps = row.record("windows"), row.record("taps")
    row.read("x", _depthwise_input(row, windows))
    row.write("y", row["rows"] * windows["out_width"] * windows["channels"])
    row.scratch(_depthwise(windows, taps))


def _depthwise_input(row: Touched, windows: Touched) -> int:
    size = windows["height"] * windows["width"] * windows["channels"]
    return -(-row["rows"] // windows["out_height"]) * size


def _depthwise(windows: Touched, taps: Touched) -> int:
    """Say what is touched of depthwise weights; return what a row takes of scratch memory."""
    channels, count = taps["channels"], taps["count"]
    windows.require(windows["channels"] == channels, "weights are for all channels")
    columns, groups = _line_columns(windows), -(-windows["kernel_h"] // 4)
    taps.read("offsets", 8 * count)
    offsets = taps.table("offsets")[:count]
    reach = (windows["out_width"] - 1) * windows["stride_w"] + int(offsets.max(initial=0))
    are_inside = reach < columns * groups and int(offsets.min(initial=0)) >= 0
    windows.require(are_inside, "taps are in packed lines")
    blocks_of_16 = -(-channels // 16)
    taps.require(taps["block_bytes"] == 64 * count, "blocks hold all taps")
    taps.read("weights", blocks_of_16 * 64 * count)
    taps.read("headers", blocks_of_16 * blocks.HEADER_BYTES)
    taps.finish()
    lanes = 64 if channels >= 64 else 16
    return 64 + 4 * lanes * (windows["out_width"] + columns * groups)


def _line_columns(windows: Touched) -> int:
    across = (windows["out_width"] - 1) * windows["stride_w"]
    return across + (windows["kernel_w"] - 1) * windows["dilation_w"] + 1


@rule(depthwise_blocks.REPEAT)
def repeat(row: Touched) -> None:
    row.read("x", row["pixels"] * row["channels"])
    row.write("y", row["pixels"] * row["channels"] * row["times"])


@rule(STRIP)
def strip(row: Touched) -> None:
    windows, taps, matrix = (row.record(name) for name in ("windows", "taps", "matrix"))
    channels, width = windows["channels"], windows["out_width"]
    row.write("y", row["rows"] * width * matrix["outputs"])
    _weights(matrix, 1)
    row.require(matrix["depth"] == channels, "weights are for all channels")
    row.within("weights", channels, 4 * matrix["steps"])
    pixels = row["together"] * width
    row.within("the accumulators", _accumulators(matrix["steps"]), row["sums"])
    row.within("the sums", row["sums"] + 4 * max(pixels, LEAST_ROWS), row["row"])
    between = row["row"] + (max(pixels, LEAST_ROWS) - 1) * channels + 4 * matrix["steps"]
    work = _depthwise(windows, taps)
    if not row.has("first_matrix"):
        row.within("the depthwise rows", between, row["work"])
        row.read("x", _depthwise_input(row, windows))
    else:
        row.within("the depthwise rows", between, row["lines"])
        work = max(work, _first(row, windows))
    row.scratch(row["work"] + work)


def _first(row: Touched, windows: Touched) -> int:
    """Say what the first convolution touches; return what it takes of scratch memory."""
    first, matrix = row.record("first_windows"), row.record("first_matrix")
    _check_depth(row, first, matrix)
    width, channels = windows["width"], windows["channels"]
    row.require(matrix["outputs"] == channels, "both convolutions have the same channels")
    span = (windows["kernel_h"] - 1) * windows["dilation_h"] + 1
    row.require(row["kept"] >= span, "a window's rows are kept")
    lines = row["lines"] + row["kept"] * width * channels
    row.within("the rows that are kept", lines, row["work"])
    images = -(-row["rows"] // windows["out_height"])
    row.read("x", _input_bytes(first, row["first_layout"], images * windows["height"] * width))
    _weights(matrix, 1)
    return _product_scratch(first, row["first_step"])
