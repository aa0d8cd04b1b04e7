"""Bytes that float32 depthwise convolutions read and write.

See ``kernels/conv_f32_windows.py``.
"""

from __future__ import annotations

from delegraph_numba_cpu.bounds.conv_f32 import touch_images
from delegraph_numba_cpu.bounds.rules import Touched, rule
from delegraph_numba_cpu.instructions.depthwise_conv_f32 import DEPTHWISE, REPEAT


@rule(DEPTHWISE)
def depthwise(row: Touched) -> None:
    touch_images(row, 4 * row["columns"])
    row.read("weight", channel_bytes(row))


def channel_bytes(row: Touched) -> int:
    """Return the number of bytes of packed depthwise weights, bias included."""
    lanes = row.vector_bytes // 4
    row.require(row["tap_rows"] * row["tap_columns"] > 0, "windows have taps")
    return -(-row["columns"] // lanes) * 4 * lanes * (1 + row["tap_rows"] * row["tap_columns"])


@rule(REPEAT)
def repeat(row: Touched) -> None:
    row.loops(row["values"], row["times"])
    row.read("x", 4 * row["values"])
    row.write("y", 4 * row["values"] * row["times"])
