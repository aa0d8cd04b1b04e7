"""Instructions of ``kernels/pooling.py``: windows over images ``[N, H, W, C]``."""

from __future__ import annotations

from delegraph_numba_cpu.instructions import Instruction

_WINDOWS = (
    "source target height width channels out_height out_width window_height window_width "
    "stride_height stride_width before_height before_width rows tiles "
)
"""Words of a pooling instruction.

``rows`` is the number of output rows of all images. ``before_height`` and ``before_width`` are the
padding before the image, in pixels.
"""

_FLOAT_RANGE, _RANGE = "low:f high:f", "low high"

MAX_F32 = Instruction("max_f32", "pooling", _WINDOWS + _FLOAT_RANGE)
MAX_S8 = Instruction("max_s8", "pooling", _WINDOWS + _RANGE)
MAX_U8 = Instruction("max_u8", "pooling", _WINDOWS + _RANGE)
MAX_S16 = Instruction("max_s16", "pooling", _WINDOWS + _RANGE)
MEAN_F32 = Instruction("mean_f32", "pooling", _WINDOWS + _FLOAT_RANGE)
MEAN_S8 = Instruction("mean_s8", "pooling", _WINDOWS + _RANGE)
MEAN_U8 = Instruction("mean_u8", "pooling", _WINDOWS + _RANGE)
MEAN_S16 = Instruction("mean_s16", "pooling", _WINDOWS + _RANGE)
"""Pooling of each window's part in the image, clamped: ``MAX_...`` largest elements, ``MEAN_...``
means."""

LARGEST_COUNT = 1 << 13
"""Largest number of elements of a window for which means of bytes are exact in float32."""
