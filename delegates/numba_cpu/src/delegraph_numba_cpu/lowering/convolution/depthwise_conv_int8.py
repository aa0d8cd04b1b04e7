"""Depthwise convolutions of 8-bit integers: packed weights, and the scratch memory of a row."""

from __future__ import annotations

import numpy as np

from delegraph.arithmetic import Window
from delegraph_numba_cpu.instructions.depthwise_conv_int8 import (
    PLANE_CHANNELS,
    PLANE_LEVEL_BYTES,
    TAPS,
    has_pairs,
    plane_columns,
)
from delegraph_numba_cpu.lowering.convolution.conv_int8_constants import Product
from delegraph_numba_cpu.lowering.convolution.conv_int8_packing import (
    summands_of,
    tap_blocks,
    tap_pairs,
)
from delegraph_numba_cpu.lowering.registry import Call
from delegraph_numba_cpu.program.builder import Memory, ProgramBuilder


def depthwise_bytes(channels: int, down: Window, across: Window, vector_bytes: int) -> int:
    """Number of scratch bytes that a thread needs for an output row of a depthwise convolution.

    Args:
        channels: number of channels.
        down: windows along the height.
        across: windows along the width.
        vector_bytes: number of bytes of a register.
    """
    groups = -(-down.kernel // 4)
    columns = columns_in_planes(channels, across, vector_bytes)
    if columns:
        return 64 + 4 * channels * across.output + 4 * (64 + groups * columns * channels)
    lanes = 64 if channels >= 64 else 16
    return 64 + 4 * lanes * (across.output + line_columns(across) * groups)


def columns_in_planes(channels: int, across: Window, vector_bytes: int) -> int:
    """Return the number of columns of a depthwise line packed in planes; 0 if it is not packed so.

    Lines are packed in planes on levels with vectors of 64 bytes, for 16 or 32 channels and a
    stride of 1. The rows of input and output must have multiples of 64 values.

    Args:
        channels: number of channels.
        across: windows along the width.
        vector_bytes: number of bytes of a register.
    """
    if vector_bytes != PLANE_LEVEL_BYTES or channels not in PLANE_CHANNELS or across.stride != 1:
        return 0
    columns = line_columns(across)
    is_whole = across.input * channels % 64 == across.output * channels % 64 == 0
    if not is_whole or across.before + across.input > columns:
        return 0
    return plane_columns(columns, channels)


def line_columns(across: Window) -> int:
    """Return the number of input columns, padding included, that an output row's windows read.

    Args:
        across: windows along the width.
    """
    return (across.output - 1) * across.stride + across.span


def pack_taps(
    builder: ProgramBuilder,
    call: Call,
    product: Product,
    down: Window,
    across: Window,
    shift: int = 0,
) -> Memory:
    """Return the memory of a record that describes a depthwise node's packed weights to the kernel.

    Arguments are as of ``conv_int8.pack_matrix``; *down* and *across* are the windows along height
    and width.
    """
    name = (call.node.outputs[0], shift, builder.exact, down, across)
    channels = len(product.bias)
    in_planes = columns_in_planes(channels, across, builder.level.vector_bytes)
    repeats = 64 // channels if in_planes else 1
    outputs = np.tile(np.arange(channels), repeats)
    values = product.weight[outputs].T.reshape(down.kernel, across.kernel, len(outputs))
    byte_shift = builder.level.byte_shift
    is_paired = builder.level.has_int16_pairs and has_pairs(
        down.kernel, across.kernel, across.stride, across.dilation, across.output
    )
    pack = tap_pairs if is_paired else tap_blocks
    weights = builder.packed(("weights", *name), lambda: pack(values))
    headers = builder.packed(
        ("headers", *name), lambda: product.headers(builder.exact, shift, outputs, byte_shift)
    )
    groups, columns = -(-down.kernel // 4), in_planes or line_columns(across)
    parts = [groups, (down.kernel + 2) // 4] if is_paired else [groups] * summands_of(values)
    offsets = [
        group * columns + tap * across.dilation
        for count in parts
        for group in range(count)
        for tap in range(across.kernel)
    ]
    places = builder.packed(("offsets", *name), lambda: np.array(offsets, np.int64))
    record = {
        "weights": weights, "headers": headers, "offsets": places,
        "count": len(offsets), "low": product.low + shift, "high": product.high + shift,
        "rounding": product.rounding(builder.exact), "channels": channels,
        "block_bytes": 64 * len(offsets), "out_flip": product.out_flip(shift),
        "is_paired": int(is_paired), "plane_columns": in_planes,
    }  # fmt: skip
    return builder.record(TAPS, **record)
