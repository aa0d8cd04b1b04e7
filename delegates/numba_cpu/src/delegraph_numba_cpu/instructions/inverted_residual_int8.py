"""The block of ``kernels/inverted_residual_int8.py``: several 8-bit convolutions as one."""

from delegraph_numba_cpu.instructions import Instruction

FAMILY = "inverted_residual_int8"

STRIP = Instruction(
    "strip",
    FAMILY,
    "x y first_windows first_matrix first_layout first_step windows taps matrix rows tiles kept "
    "lines row together sums work scratch scratch_bytes",
)
"""A depthwise convolution followed by a 1 x 1 one, row by row; a convolution before it unless
``first_matrix`` is 0.

Of the first one's output only ``kept`` rows exist, at ``lines`` in scratch memory, over and over;
of the depthwise one's ``together`` rows, at ``row``, so many that the last one's micro-kernels are
busy. What those rows add to its accumulators is at ``sums``. All are unsigned. ``rows`` of the
output of all images are split into ``tiles``.
"""
