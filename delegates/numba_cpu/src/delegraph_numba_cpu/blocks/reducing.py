"""Blocks of ``kernels/reducing.py``: the middle axis of ``[outer, length, inner]`` is reduced."""

from __future__ import annotations

from delegraph_numba_cpu.blocks import Block

_AXES = "source target outer length inner tiles"

SUM_F32 = Block("sum_f32", "reducing", _AXES + " factor:f")
PRODUCT_F32 = Block("product_f32", "reducing", _AXES + " factor:f")
MAX_F32 = Block("max_f32", "reducing", _AXES + " factor:f")
MIN_F32 = Block("min_f32", "reducing", _AXES + " factor:f")
"""Results are multiplied by ``factor``."""

SUM_I32 = Block("sum_i32", "reducing", _AXES)
PRODUCT_I32 = Block("product_i32", "reducing", _AXES)
MAX_I32 = Block("max_i32", "reducing", _AXES)
MIN_I32 = Block("min_i32", "reducing", _AXES)
"""int32; sums and products wrap."""

MAX_S8 = Block("max_s8", "reducing", _AXES)
MAX_U8 = Block("max_u8", "reducing", _AXES)
MIN_S8 = Block("min_s8", "reducing", _AXES)
MIN_U8 = Block("min_u8", "reducing", _AXES)
SUM_S8 = Block("sum_s8", "reducing", _AXES)
SUM_U8 = Block("sum_u8", "reducing", _AXES)
"""Sums of bytes are int32."""
