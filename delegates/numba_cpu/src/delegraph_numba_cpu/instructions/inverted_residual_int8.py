"""The instruction of ``kernels/inverted_residual_int8.py``: several fused 8-bit convolutions."""

from delegraph_numba_cpu.instructions import Instruction

FAMILY = "inverted_residual_int8"

STRIP = Instruction(
    "strip",
    FAMILY,
    "x y first_windows first_matrix first_layout first_step windows taps matrix rows tiles kept "
    "lines row together sums work scratch scratch_bytes",
)
"""Fused convolutions, computed row by row: an optional one, a depthwise one, and a 1 x 1 one.

Without the optional first convolution, ``first_matrix`` is 0. A ring buffer at ``lines`` in scratch
memory holds ``kept`` rows of its output. ``together`` rows of the depthwise output are at ``row``;
they are enough for whole register tiles of the last convolution. ``sums`` is the offset of these
rows' sums for its accumulators. All values are unsigned. ``rows`` output rows of all images are
split into ``tiles``.
"""
