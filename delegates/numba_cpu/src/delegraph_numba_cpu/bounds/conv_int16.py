"""Bytes that convolutions and matrix products of 16-bit activations read and write."""

from __future__ import annotations

from delegraph_numba_cpu.bounds.conv_int8 import image_bytes
from delegraph_numba_cpu.bounds.rules import Touched, rule
from delegraph_numba_cpu.instructions import conv_int16 as instructions


@rule(instructions.CONVOLVE)
def convolve_int16(row: Touched) -> None:
    pairs = row["pairs"]
    row.require(pairs > 0, "windows have values")
    windows = _common(row, 4 * instructions.LANES * pairs)
    row.require(windows["row_bytes"] == 4 * pairs, "windows are as long as weights")
    rows = -(-row["step"] // instructions.ROWS) * instructions.ROWS
    row.scratch(instructions.ACC_BYTES + rows * windows["row_bytes"])


@rule(instructions.DEPTHWISE)
def depthwise_int16(row: Touched) -> None:
    taps, outputs = row["taps"], row["outputs"]
    row.require(0 < taps <= instructions.MOST_TAPS, "windows have taps, and not too many")
    windows = _common(row, 2 * instructions.LANES * taps)
    row.require(windows["channels"] == 2 * outputs, "weights are for all channels")
    row.within("a window", 2 * outputs * taps, windows["row_bytes"])
    read = (
        row["step"] * windows["row_bytes"] + 2 * instructions.LANES
    )  # the last channels are read as 16
    row.scratch(instructions.ACC_BYTES + read)


def _common(row: Touched, block_bytes: int) -> Touched:
    """Declare what both kernels of 16-bit convolutions access; return the record of the windows.

    *block_bytes* is the number of bytes of the packed weights of 16 outputs.
    """
    windows, outputs, pixels = row.record("windows"), row["outputs"], row["pixels"]
    windows.finish()
    blocks_of_16 = -(-outputs // instructions.LANES)
    row.loops(pixels, outputs)
    row.require(row["step"] > 0, "windows are laid out")
    row.read("x", image_bytes(windows, pixels))
    row.write("y", 2 * pixels * outputs)
    row.read("weights", blocks_of_16 * block_bytes)
    row.read("headers", blocks_of_16 * instructions.HEADER_BYTES)
    return windows
