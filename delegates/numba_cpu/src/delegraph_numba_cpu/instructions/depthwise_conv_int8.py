"""Blocks of ``kernels/depthwise_conv_int8.py``, and the record of weights that one points to."""

from delegraph_numba_cpu.instructions import Instruction

FAMILY = "depthwise_conv_int8"

TAPS = Instruction(
    "taps",
    FAMILY,
    "weights headers offsets count channels block_bytes low high rounding out_flip",
)
"""Depthwise weights: for each 16 channels, ``count`` times 16 dwords of four taps below each other;
for each 64 channels that are complete, as many times 64 dwords in the order of
``dot_products.zipped``.

``offsets`` says at which column of a packed line the dwords of each are, int64. Headers and
``out_flip`` are as for ``conv_int8.MATRIX``.
"""

DEPTHWISE = Instruction("depthwise", FAMILY, "x y windows taps rows tiles scratch scratch_bytes")
"""DEPTHWISE_CONV_2D with one output for each channel; ``rows`` of the output of all images."""

REPEAT = Instruction("repeat", FAMILY, "x y pixels channels times tiles")
"""Every channel several times, next to each other."""
