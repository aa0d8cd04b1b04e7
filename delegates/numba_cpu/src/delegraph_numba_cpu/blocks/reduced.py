"""Blocks of ``kernels/reduced.py``: what follows on a reduction, and reductions to positions."""

from __future__ import annotations

from delegraph_numba_cpu.blocks import Block

_AXES = "source target outer length inner tiles"
"""The middle axis of ``[outer, length, inner]`` is reduced."""

SCALE = Block(
    "scale", "reduced", "source target count low high subtrahend multiplier shift period up bias"
)
"""int32 sums to bytes in fixed point.

``count`` values, less ``subtrahend``, times ``multiplier * 2**(shift - 31)``, plus ``bias``. The
second of two roundings takes halves away from zero, but up in the first ``up`` of each ``period``,
which divides ``count``.
"""

SCALE_REAL = Block("scale_real", "reduced", "source target count low high zero scale:f bias:f")
"""int32 sums to bytes in float32: ``round(sum * scale + bias) + zero``, halves away from zero."""

INT32 = Block("int32", "reduced", _AXES + " operation")
"""A reduction of int32. Sums and products wrap, means are cut towards zero."""

SUM, MEAN, MAX, MIN, PRODUCT = range(5)
"""Values of ``operation``."""

ARG = Block("arg", "reduced", "source target outer length inner kind smallest wide tiles")
"""Position of the first largest (or smallest) element: int32, or int64 when ``wide``."""

ARG_KINDS = {"FLOAT32": 0, "INT8": 1, "UINT8": 2, "INT32": 3}
