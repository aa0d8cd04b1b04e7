"""Instructions of ``kernels/softmax.py``.

All have ``rows`` rows of ``length`` elements. Each worker has ``scratch_bytes`` of scratch memory.
If the length is not a multiple of a vector's, the ends of float32 rows are copied through it.
"""

from delegraph_numba_cpu.instructions import Instruction

ROWS = "source target rows length tiles scratch scratch_bytes"

SOFTMAX = Instruction("softmax", "softmax", f"{ROWS} beta:f")
LOG_SOFTMAX = Instruction("log_softmax", "softmax", ROWS)

SOFTMAX_INT16 = Instruction(
    "softmax_int16",
    "softmax",
    "source target rows length tiles exponentials reciprocals left multiplier right",
)
"""SOFTMAX of int16 rows by interpolation in two tables of int64.

Differences to a row's maximum are shifted left, multiplied and shifted right. The results are
positions in 513 ``exponentials``. ``reciprocals`` holds values of 1 / (1 + x).
"""

INTERPOLATION_POINTS = 513

LONGEST_INT16_ROW = 1 << 16
"""Largest number of elements for which 31 bits hold the sum of their exponentials."""

_8_BIT = f"{ROWS} table flip scale:f half:f limit zero_point"

SOFTMAX_8_BIT = Instruction("softmax_8_bit", "softmax", _8_BIT)
"""SOFTMAX of 8-bit rows by a table of exponentials.

``table`` holds the exponential of every difference to a row's maximum, by its low 8 bits. ``flip``
is 128 for int8, which are compared as unsigned numbers after that bit is flipped. Results are at
most ``limit``; then ``zero_point`` is added, and the low 8 bits are stored. Scratch memory holds
the exponentials of a row, float32.
"""

SOFTMAX_8_BIT_TO_INT16 = Instruction("softmax_8_bit_to_int16", "softmax", _8_BIT)
"""SOFTMAX as of :data:`SOFTMAX_8_BIT` with int16 results."""

LOG_SOFTMAX_8_BIT = Instruction(
    "log_softmax_8_bit",
    "softmax",
    "source target rows length tiles table flip scale:f zero_point",
)
"""LOG_SOFTMAX of 8-bit rows by the table of :data:`SOFTMAX_8_BIT`, which is of numbers up to 1.

Results are in sixteenths. They are at most 0, at least -255; then ``zero_point`` is added, and the
low 8 bits are stored.
"""
