"""Bytes that convolutions and matrix products of 8-bit integers read and write."""

from __future__ import annotations

from delegraph_numba_cpu.bounds.rules import Touched, rule, steps
from delegraph_numba_cpu.instructions import conv_int8 as instructions

LEAST_ROWS = 16
"""Number of matrix rows that micro-kernels read, even if the matrix has fewer rows."""


@rule(instructions.CONVOLVE)
def convolve(row: Touched) -> None:
    parts = row["row_tiles"] * row["column_tiles"]
    row.require(parts > 0 == row.tiles % parts, "tiles are divided among images")
    images, pixels = row.tiles // parts, row["pixels"]
    windows = row.record("windows")
    matrix, *others = row.records("matrix", images, row["matrix_image"])
    for other in others if row.is_constant("matrix") else ():
        other.require(other.numbers == matrix.numbers, "matrices of a stack are alike")
        touch_weights(other, 1)
    row.loops(images, pixels, matrix["outputs"])
    check_depth(row, windows, matrix)
    each = input_bytes(windows, row["layout"], pixels)
    row.read("x", (images - 1) * row["in_image"] + each)
    row.write("y", images * pixels * matrix["outputs"])
    touch_weights(matrix, images if row["matrix_image"] else 1)
    row.scratch(product_scratch(windows, row["step"], row["layout"]))


def check_depth(row: Touched, windows: Touched, matrix: Touched) -> None:
    row.require(windows["row_bytes"] == 4 * matrix["steps"], "windows are as long as weights")
    row.require(matrix["depth"] <= windows["row_bytes"], "weights are as deep as they say")


def input_bytes(windows: Touched, layout: int, pixels: int) -> int:
    """Return the number of input bytes that are read to compute *pixels* output pixels.

    Args:
        windows: record that describes the geometry of the windows.
        layout: word ``layout`` of the kernel call: whether inputs are images or rows of a matrix.
        pixels: number of output pixels.
    """
    windows.finish()
    if layout not in (instructions.WINDOWED, instructions.LINES):
        return pixels * windows["row_bytes"]
    return image_bytes(windows, pixels)


def image_bytes(windows: Touched, pixels: int) -> int:
    """Return the number of bytes of the input images that *pixels* output pixels need.

    Args:
        windows: record that describes the geometry of the windows.
        pixels: number of output pixels.
    """
    each = windows["out_height"] * windows["out_width"]
    windows.require(each > 0 or not pixels, "images have pixels")
    taps = steps(windows["kernel_h"], windows["kernel_w"], windows["channels"])
    windows.within("a window", taps, windows["row_bytes"])
    windows.require(min(windows["stride_h"], windows["stride_w"]) > 0, "windows move on")
    size = windows["height"] * windows["width"] * windows["channels"]
    return -(-pixels // max(each, 1)) * size


def touch_weights(matrix: Touched, images: int) -> None:
    """Declare the packed weights and their headers that a kernel call reads.

    Args:
        matrix: record that describes the first weight matrix, with the addresses of all matrices.
        images: number of weight matrices that follow one another in memory.
    """
    count = images * -(-matrix["outputs"] // 16)
    matrix.require(matrix["block_bytes"] == 64 * matrix["steps"], "blocks hold all steps")
    matrix.read("weights", count * matrix["block_bytes"])
    matrix.read("headers", count * instructions.HEADER_BYTES)
    matrix.finish()


def product_scratch(windows: Touched, step: int, layout: int) -> int:
    """Return the number of scratch bytes that each thread needs for a product of 8-bit matrices.

    Args:
        windows: record that describes how windows become rows of the left matrix.
        step: number of rows of the left matrix that are multiplied together.
        layout: word ``layout`` of the kernel call.
    """
    if layout == instructions.LINES:
        return lines_scratch(windows, step)
    rows = max(step, LEAST_ROWS)
    laid_out = (4 * rows + 127) // 64 * 64 + rows * windows["row_bytes"]
    return accumulator_bytes(windows["row_bytes"] // 4) + laid_out


def lines_scratch(windows: Touched, step: int) -> int:
    """Return the number of scratch bytes that each thread needs for the layout ``LINES``.

    Args:
        windows: record that describes the windows.
        step: number of windows whose lines are written together.
    """
    line_bytes, channels, height = (windows[n] for n in ("line_bytes", "channels", "out_height"))
    stride, across, kernel = (windows[n] for n in ("stride_w", "out_width", "kernel_w"))
    lines, dilation = windows["kernel_h"], windows["dilation_h"]
    windows.require(step > 0 < across, "windows are computed together")
    sizes = lines, kernel, channels, stride, windows["stride_h"], dilation
    windows.require(min(sizes) > 0, "windows have inputs, and move")
    windows.require(windows["dilation_w"] == 1 and windows["left"] >= 0, "lines have no gaps")
    windows.require(not windows["is_transposed"] and line_bytes % 4 == 0, "lines are words")
    piece = -(-kernel * channels // 4) * 4
    windows.require(windows["row_bytes"] == lines * piece, "windows are whole lines")
    seen = max(windows["left"] + windows["width"], (across - 1) * stride + kernel)
    windows.within("a padded line", seen * channels, line_bytes)
    rows = min((step + across - 2) // across + 1, height)
    count = (rows - 1) * windows["stride_h"] + (lines - 1) * dilation + 1
    copies = 1
    if windows.vector_bytes == 32:
        copies = 3
        windows.require(channels * stride % 4 == 0, "windows begin at words")
    addresses = 8 * (step + instructions.SPARE_WINDOWS)
    return instructions.ACC_BYTES + addresses + copies * count * line_bytes + 8


def accumulator_bytes(steps: int) -> int:
    """Return the number of scratch bytes for accumulators and for rows converted to int16.

    Args:
        steps: number of groups of 4 bytes in a row of the left matrix.
    """
    return instructions.ACC_BYTES + instructions.SPLIT_BYTES * steps


@rule(instructions.PACK_STACK)
def pack_stack(row: Touched) -> None:
    images, outputs, depth = row["images"], row["outputs"], row["depth"]
    count = -(-outputs // 16)
    row.loops(images, outputs, depth)
    size = 8 * len(instructions.MATRIX.names)
    row.read("source", images * outputs * depth)
    row.read("header", count * instructions.HEADER_BYTES)
    row.read("matrix", size)
    row.write("matrices", images * size)
    row.write("headers", images * count * instructions.HEADER_BYTES)
    row.write("weights", images * count * 64 * -(-depth // 4))
    row.require(row.is_constant("matrix"), "the copied record is there before the run")
    made, *others = row.records("matrices", images, size)
    row.require(len(others) + 1 == images and outputs > 0, "each image gets its record")
    copied = row.record("matrix")
    row.require(made.numbers == copied.numbers, "records are what later rows are checked by")
    row.require(
        all(made.address(name) == row.address(name) for name in ("weights", "headers")),
        "records name the weights that are written",
    )
