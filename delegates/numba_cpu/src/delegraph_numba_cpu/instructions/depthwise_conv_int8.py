"""Instructions of ``kernels/depthwise_conv_int8.py``, and the record of weights."""

from delegraph_numba_cpu.instructions import Instruction

FAMILY = "depthwise_conv_int8"

TAPS = Instruction(
    "taps",
    FAMILY,
    "weights headers offsets count channels block_bytes low high rounding out_flip is_paired "
    "plane_columns",
)
"""Depthwise weights as 32-bit words of four vertically adjacent taps.

Each 16 channels have ``count`` times 16 words. Each complete group of 64 channels has ``count``
times 64 words, in the order of ``dot_products.zipped``. ``offsets`` are the columns of a packed
line at which the words are read, int64. Headers and ``out_flip`` are those of
``conv_int8.MATRIX``.

If ``is_paired`` is 1, words are two int16, for windows of :func:`has_pairs` on levels with
``CpuLevel.has_int16_pairs``. Words of rows 0 and 2 of every four rows of the window precede those
of rows 1 and 3.

``plane_columns`` is 0, or the number of columns of a packed line in planes; see
``kernels/depthwise_conv_int8_planes.py``. ``channels`` is then 16 or 32, and weights and headers
are those of 64 channels, in which the channels are repeated.
"""

PLANE_LEVEL_BYTES = 64
"""Number of bytes of a vector on levels that pack lines in planes."""

PLANE_CHANNELS = (16, 32)
"""Numbers of channels of images whose lines are packed in planes."""


def plane_columns(columns: int, channels: int) -> int:
    """Return the number of columns of a packed line in planes, which end with 64 unread bytes.

    Args:
        columns: number of columns that are read.
        channels: number of channels.

    >>> plane_columns(34, 32), plane_columns(34, 16)
    (36, 40)
    """
    pixels = 64 // channels
    return (-(-columns // pixels) + 1) * pixels


def has_pairs(kernel_h: int, kernel_w: int, stride_w: int, dilation_w: int, out_width: int) -> bool:
    """Whether a micro-kernel with int16 pairs computes windows of these sizes and strides.

    Windows must be 3 or 5 wide, have more than one row, and share columns. An output row must have
    at least ``4 * dilation_w`` pixels.
    """
    shares = stride_w == 1 or (stride_w == 2 and dilation_w == 1)
    return kernel_w in (3, 5) and shares and kernel_h > 1 and out_width >= 4 * dilation_w > 0


def paired_words(kernel_h: int, kernel_w: int) -> int:
    """Number of words of two int16 for all taps of a channel: ``count`` of :data:`TAPS`.

    The window has *kernel_h* rows and *kernel_w* columns.
    """
    return ((kernel_h + 3) // 4 + (kernel_h + 2) // 4) * kernel_w


DEPTHWISE = Instruction("depthwise", FAMILY, "x y windows taps rows tiles scratch scratch_bytes")
"""DEPTHWISE_CONV_2D with one output per channel, for ``rows`` output rows of all images."""

REPEAT = Instruction("repeat", FAMILY, "x y pixels channels times tiles")
"""Copy of an image in which each channel is repeated ``times`` times."""
