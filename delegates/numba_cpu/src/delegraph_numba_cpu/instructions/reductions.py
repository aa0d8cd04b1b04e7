"""Blocks of ``kernels/reductions.py``: the middle axis of ``[outer, length, inner]`` is reduced."""

from __future__ import annotations

from delegraph_numba_cpu.instructions import Instruction

_AXES = "source target outer length inner tiles "

SUM_F32 = Instruction("sum_f32", "reductions", _AXES + "divisor:f")
"""Sums are divided by ``divisor``, as TFLite divides for a mean; a reciprocal rounds otherwise."""

PRODUCT_F32 = Instruction("product_f32", "reductions", _AXES)

MAX_F32 = Instruction("max_f32", "reductions", _AXES + "sign:f")
"""Elements and results are multiplied by ``sign``; by -1 the largest becomes the smallest."""

SUM_BYTES = Instruction("sum_bytes", "reductions", _AXES + "mask flip")
"""int32 sums of sign-extended bytes ``& mask``: -1 for int8, 255 for uint8; ``flip`` is 0."""

MAX_BYTES = Instruction("max_bytes", "reductions", _AXES + "mask flip")
"""The same for the largest byte; with a ``flip`` of -1, the smallest."""

SCALE = Instruction(
    "scale", "reductions", "source target count low high subtrahend multiplier shift period up bias"
)
"""int32 sums to bytes in fixed point.

``count`` values, less ``subtrahend``, times ``multiplier * 2**(shift - 31)``, plus ``bias``. The
second of two roundings takes halves away from zero, but up in the first ``up`` of each ``period``,
which divides ``count``.
"""

SCALE_REAL = Instruction(
    "scale_real", "reductions", "source target count low high zero scale:f bias:f"
)
"""int32 sums to bytes in float32: ``round(sum * scale + bias) + zero``, halves away from zero."""

INT32 = Instruction("int32", "reductions", _AXES + "operation")
"""A reduction of int32. Sums and products wrap, means are cut towards zero."""

SUM, MEAN, MAX, MIN, PRODUCT = range(5)
"""Values of ``operation``."""
