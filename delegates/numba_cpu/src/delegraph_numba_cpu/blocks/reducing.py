"""Blocks of ``kernels/reducing.py``: the middle axis of ``[outer, length, inner]`` is reduced."""

from __future__ import annotations

from delegraph_numba_cpu.blocks import Block

_AXES = "source target outer length inner tiles "

SUM_F32 = Block("sum_f32", "reducing", _AXES + "factor:f")
PRODUCT_F32 = Block("product_f32", "reducing", _AXES + "factor:f")
"""Results are multiplied by ``factor``."""

MAX_F32 = Block("max_f32", "reducing", _AXES + "factor:f")
"""So are the elements; by -1 the largest becomes the smallest."""

SUM_BYTES = Block("sum_bytes", "reducing", _AXES + "mask flip")
"""int32 sums of sign-extended bytes ``& mask``: -1 for int8, 255 for uint8; ``flip`` is 0."""

MAX_BYTES = Block("max_bytes", "reducing", _AXES + "mask flip")
"""The same for the largest byte; with a ``flip`` of -1, the smallest."""
