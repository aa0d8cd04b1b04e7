"""Instructions of ``kernels/resize.py``: images ``[N, H, W, C]`` of another height and width."""

from __future__ import annotations

from delegraph_numba_cpu.instructions import Instruction

_WORDS = "source target image_bytes channels out_height out_width down across rows tiles"

TAP_WORDS = 3
"""Number of words of a position: byte offsets of two input pixels, and the second pixel's share.

The share is a float32; for int8 it is an integer in units of 2**-10.
"""

BILINEAR_F32 = Instruction("bilinear_f32", "resize", _WORDS)
BILINEAR_U8 = Instruction("bilinear_u8", "resize", _WORDS)
BILINEAR_S8 = Instruction("bilinear_s8", "resize", _WORDS)
"""Bilinear resizing; ``down`` and ``across`` are tables of positions of output rows and columns."""
