"""8-bit convolutions whose windows are read from padded lines of the image, without a copy."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from delegraph.arithmetic import Window
from delegraph_numba_cpu.instructions import conv_int8 as instructions
from delegraph_numba_cpu.lowering.convolution.conv_int8_constants import Product
from delegraph_numba_cpu.lowering.convolution.conv_int8_packing import Integers
from delegraph_numba_cpu.program.builder import ProgramBuilder, aligned

CACHED_BYTES = 24 * 1024
"""Approximate number of bytes of padded lines that are written together."""

MOST_BYTES = 64 * 1024
"""Largest number of bytes of the lines that one output row reads."""

LEAST_PIXELS = 8
"""Least number of pixels; for fewer, copying windows is faster than half-empty register tiles."""

MOST_PIXELS = 512
"""Largest number of pixels that are computed together; a single row may have twice as many."""


@dataclass(frozen=True)
class Lines:
    """Padded lines of an image, and the windows that are computed from them together.

    Attributes:
        line_bytes: bytes of a line with its padding, a multiple of 4.
        step: number of windows.
        memory: number of bytes of scratch memory.
    """

    line_bytes: int
    step: int
    memory: int


def lines_of(
    builder: ProgramBuilder, channels: int, windows: tuple[Window, Window], product: Product
) -> Lines | None:
    """Return the lines from which windows are read, or None if windows have to be copied.

    Args:
        builder: builder of the program, with the processor's level.
        channels: number of channels of the input.
        windows: windows along height and along width.
        product: constants of the node.
    """
    down, across = windows
    vector_bytes = builder.level.vector_bytes
    if vector_bytes < 32 or builder.level.has_tiles or not _has_signed_bytes(product):
        return None
    if not _are_dense(down) or not _are_dense(across) or across.dilation != 1:
        return None
    if down.kernel * across.kernel == 1 or across.output > 2 * MOST_PIXELS:
        return None
    if down.output * across.output < LEAST_PIXELS:
        return None
    if vector_bytes == 32 and channels * across.stride % 4:
        return None  # rows of int16 begin at words
    seen = (across.output - 1) * across.stride + across.kernel
    padded = max(across.before + across.input, seen) * channels
    line_bytes = -(-padded // 4) * 4
    if down.span * line_bytes > MOST_BYTES:
        return None
    rows = max((CACHED_BYTES // line_bytes - down.span) // down.stride + 1, 1)
    width = across.output
    step = min(rows, max(MOST_PIXELS // width, 1), down.output) * width
    count = lines_together(step, width, down.output, down.stride, down.span)
    copies = 3 if vector_bytes == 32 else 1
    addresses = 8 * (step + instructions.SPARE_WINDOWS)
    memory = instructions.ACC_BYTES + addresses + copies * count * line_bytes
    return Lines(line_bytes, step, aligned(memory) + 64)


def _has_signed_bytes(product: Product) -> bool:
    values = product.weight
    return values.dtype == np.int8 or bool(values.min() >= -128 and values.max() <= 127)


def _are_dense(window: Window) -> bool:
    """Whether windows leave no input unread, between them or before the first one."""
    return 0 < window.stride <= window.kernel and window.before >= 0 < window.output


def lines_together(step: int, width: int, height: int, stride: int, span: int) -> int:
    """Return the largest number of image lines that *step* adjacent windows read.

    Eight windows, four in a row, may begin in the middle of a row and so lie in three.

    >>> lines_together(8, 4, 10, 1, 3)
    5

    Args:
        step: number of windows.
        width: number of windows in an output row.
        height: number of output rows.
        stride: lines from one output row to the next.
        span: lines of a window.
    """
    rows = min((step + width - 2) // width + 1, height)
    return (rows - 1) * stride + span


def with_gaps(product: Product, lines: int) -> Product:
    """Return *product* with zeros inserted after the weights of each line of a window.

    The number of weights of a line is then a multiple of 4.

    Args:
        product: constants of a node, whose weights are ``[O, K]``.
        lines: number of lines of a window.
    """
    outputs, depth = product.weight.shape
    size = depth // lines
    padded: Integers = np.zeros((outputs, lines, -(-size // 4) * 4), product.weight.dtype)
    padded[..., :size] = product.weight.reshape(outputs, lines, size)
    return replace(product, weight=padded.reshape(outputs, -1))
