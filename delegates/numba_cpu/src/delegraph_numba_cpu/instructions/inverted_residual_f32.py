"""The block of ``kernels/inverted_residual_f32.py``; lengths are bytes, as in ``conv_f32``."""

from delegraph_numba_cpu.instructions import Instruction
from delegraph_numba_cpu.instructions.conv_f32 import CONV_WORDS, WINDOWS

INVERTED_RESIDUAL = Instruction(
    "inverted_residual",
    "inverted_residual_f32",
    " ".join(
        [
            WINDOWS,
            "ring ring_rows result_at",
            *(f"expand_{word}" for word in CONV_WORDS.split()),
            *(f"project_{word}" for word in CONV_WORDS.split()),
        ]
    ),
)
"""A depthwise convolution of expanded rows, and the convolution of single pixels after it.

The first words are those of the depthwise part, which reads a ring of ``ring_rows`` padded rows of
``row`` bytes and one of zeros, for each worker; ``tap_row`` counts rows. ``expand_weight`` is 0
when rows are copied, not computed: ``expand_out_w`` pixels of ``expand_tap_bytes``. What lies
between the depthwise part and the projection is at ``result_at`` in the scratch.
"""
