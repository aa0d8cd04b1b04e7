"""Instructions of ``kernels/reductions.py``: reductions of ``[outer, length, inner]`` by axis 1."""

from __future__ import annotations

from delegraph_numba_cpu.instructions import Instruction

_AXES = "source target outer length inner tiles "

SUM_F32 = Instruction("sum_f32", "reductions", _AXES + "divisor:f")
"""Sums divided by ``divisor``, as TFLite computes means.

A multiplication by the reciprocal would round differently.
"""

PRODUCT_F32 = Instruction("product_f32", "reductions", _AXES)

MAX_F32 = Instruction("max_f32", "reductions", _AXES + "sign:f")
"""Largest elements; elements and results are multiplied by ``sign``, so that -1 gives the
smallest."""

SUM_BYTES = Instruction("sum_bytes", "reductions", _AXES + "mask flip")
"""int32 sums of bytes, sign-extended, ``& mask``: -1 for int8, 255 for uint8; ``flip`` is 0."""

MAX_BYTES = Instruction("max_bytes", "reductions", _AXES + "mask flip")
"""Largest bytes, or smallest if ``flip`` is -1; ``mask`` is -1 for int8 and 255 for uint8."""

SCALE = Instruction(
    "scale", "reductions", "source target count low high subtrahend multiplier shift period up bias"
)
"""Conversion of int32 sums to bytes in fixed point.

Each of ``count`` sums, minus ``subtrahend``, is multiplied by ``multiplier * 2**(shift - 31)``, and
``bias`` is added. The product is rounded twice. The second time, halves are rounded up in the first
``up`` elements of each ``period``, and away from zero in others. ``period`` divides ``count``.
"""

SCALE_REAL = Instruction(
    "scale_real", "reductions", "source target count low high zero scale:f bias:f"
)
"""Conversion of int32 sums to bytes: ``round(sum * scale + bias) + zero``.

Halves are rounded away from zero.
"""

INT32 = Instruction("int32", "reductions", _AXES + "operation")
"""Reduction of int32: sums and products wrap around, means are truncated towards zero."""

SUM, MEAN, MAX, MIN, PRODUCT = range(5)
"""Values of the word ``operation``."""
