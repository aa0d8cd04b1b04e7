"""The instruction of ``kernels/inverted_residual_f32.py``; lengths are bytes as in ``conv_f32``."""

from delegraph_numba_cpu.instructions import Instruction
from delegraph_numba_cpu.instructions.conv_f32 import CONV_WORDS, WINDOWS

INVERTED_RESIDUAL = Instruction(
    "inverted_residual",
    "inverted_residual_f32",
    " ".join(
        [
            WINDOWS,
            "ring_at ring_rows zeros result_at has_ends last_at",
            *(f"expand_{word}" for word in CONV_WORDS.split()),
            *(f"project_{word}" for word in CONV_WORDS.split()),
        ]
    ),
)
"""A depthwise convolution of expanded rows, and the 1 x 1 convolution after it.

The first words are those of the depthwise convolution. It reads a ring buffer of ``ring_rows``
padded rows of ``row`` bytes and one row of ``zeros`` bytes, at ``ring_at`` in scratch memory.
``tap_row`` counts rows.
``expand_weight`` is 0 if rows are copied instead of computed: ``expand_out_w`` pieces of
``expand_tap_bytes``, which begin at ``expand_left`` in an input row, ``expand_stride_column``
apart. Results of the depthwise convolution are at ``result_at`` in scratch memory. It may compute
two adjacent pixels of few channels as one: ``out_w`` is then half of ``project_out_w``.

With ``has_ends``, the ring buffer holds only the ends of rows, side by side: the left end, if there
are zeros before it, and the right end. Windows of a row's first register tile read the left end.
Windows of its last tile read the right end, from byte ``last_at`` on. All other windows read the
input itself.
"""
