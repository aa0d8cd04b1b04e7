"""Instructions of ``kernels/softmax.py``.

All have ``rows`` rows of ``length`` elements. Each worker has ``scratch_bytes`` of scratch memory.
If a vector's length does not divide the rows' length, the ends of float32 rows are computed in
scratch memory.
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

Differences from a row's maximum are shifted left, multiplied and shifted right. The results are
positions in a table of 513 ``exponentials``. ``reciprocals`` holds values of 1 / (1 + x).
"""

INTERPOLATION_POINTS = 513

LONGEST_INT16_ROW = 1 << 16
"""Largest number of elements of a row whose sum of exponentials fits in 31 bits."""

_8_BIT = f"{ROWS} table flip scale:f half:f limit zero_point"

SOFTMAX_8_BIT = Instruction("softmax_8_bit", "softmax", _8_BIT)
"""SOFTMAX of 8-bit rows by a table of exponentials.

``table`` holds the exponential of every difference to a row's maximum, by its low 8 bits. ``flip``
is 128 for int8: with that bit flipped, int8 are compared as unsigned numbers. Results are at most
``limit``; then ``zero_point`` is added, and the low 8 bits are stored. Scratch memory holds the
exponentials of a row, float32.
"""

SOFTMAX_8_BIT_TO_INT16 = Instruction("softmax_8_bit_to_int16", "softmax", _8_BIT)
"""SOFTMAX like :data:`SOFTMAX_8_BIT`, but with int16 results."""

LOG_SOFTMAX_8_BIT = Instruction(
    "log_softmax_8_bit",
    "softmax",
    "source target rows length tiles table flip scale:f zero_point",
)
"""LOG_SOFTMAX of 8-bit rows by the table of :data:`SOFTMAX_8_BIT`, which is of numbers up to 1.

Results are in sixteenths, from -255 to 0. Then ``zero_point`` is added, and the low 8 bits are
stored.
"""
