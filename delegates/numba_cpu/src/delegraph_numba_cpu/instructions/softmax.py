"""Blocks of ``kernels/softmax.py``.

All have ``rows`` rows of ``length`` elements; the ends of float32 rows pass through
``scratch_bytes`` of scratch memory a worker when their length is no multiple of the vectors'.
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
"""Differences to a row's maximum, shifted left, multiplied and shifted right, are where to
interpolate between 513 ``exponentials``; 1 / (1 + x) lies between ``reciprocals``. All are int64.
"""

INTERPOLATION_POINTS = 513

LONGEST_INT16_ROW = 1 << 16
"""Elements whose exponentials have a sum of 31 bits."""

_8_BIT = "source target rows length tiles table flip scale:f half:f limit zero_point"

SOFTMAX_8_BIT = Instruction("softmax_8_bit", "softmax", _8_BIT)
"""``table`` holds the exponential of every difference to a row's maximum, by its low 8 bits.

``flip`` is 128 for int8, which are compared as unsigned numbers after that bit is flipped.
``zero_point`` is added to results after a ``limit``, and their low 8 bits are stored.
"""

SOFTMAX_8_BIT_TO_INT16 = Instruction("softmax_8_bit_to_int16", "softmax", _8_BIT)
"""The same, but 16 bits are stored."""
