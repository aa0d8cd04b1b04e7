"""Instructions of ``kernels/depthwise_conv_f32.py``; lengths are bytes, as in ``conv_f32``."""

from delegraph_numba_cpu.instructions import Instruction
from delegraph_numba_cpu.instructions.conv_f32 import WINDOWS

DEPTHWISE = Instruction("depthwise", "depthwise_conv_f32", WINDOWS)
"""A convolution in which each output channel reads the input channel of the same number."""

REPEAT = Instruction("repeat_channels", "depthwise_conv_f32", "x y values times tiles")
"""Copy of ``values`` float32 values, each repeated ``times`` times."""

HIGH = 8
"""Number of adjacent pixels of the higher register tile of rows."""


def tile_pixels(width: int, height: int) -> int:
    """Return the number of pixels of a register tile of rows: *height* or ``HIGH``.

    The last tile of a row ends with the row, and computes some pixels again. With ``HIGH``, rows of
    8, 16, 32 or 64 pixels are whole tiles.

    Args:
        width: number of pixels of an output row.
        height: number of pixels of a register tile of matrix products.

    >>> tile_pixels(32, 7), tile_pixels(28, 7)
    (8, 7)
    """
    if width < HIGH or -(-width // height) * height < -(-width // HIGH) * HIGH:
        return height
    return HIGH
