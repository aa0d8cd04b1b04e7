"""Instructions of ``kernels/l2_normalization.py``; rows are those of ``softmax``."""

from delegraph_numba_cpu.instructions import Instruction
from delegraph_numba_cpu.instructions.softmax import ROWS

L2_NORMALIZATION = Instruction("l2_normalization", "l2_normalization", ROWS)

L2_NORMALIZATION_8_BIT = Instruction(
    "l2_normalization_8_bit",
    "l2_normalization",
    "source target rows length tiles flip zero_point multiple shift target_zero",
)
"""L2_NORMALIZATION of 8-bit rows, in fixed-point arithmetic.

Bytes are xored with ``flip``, and ``zero_point`` is subtracted. The difference times ``multiple``
and ``2**shift`` is divided by the row's norm. The result is clamped to int8, ``target_zero`` is
added, and the low 8 bits are stored.
"""
