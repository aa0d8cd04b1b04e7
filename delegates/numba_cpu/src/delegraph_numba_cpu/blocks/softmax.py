"""Blocks of ``kernels/softmax.py``.

All have ``rows`` rows of ``length`` elements; the ends of float32 rows pass through
``scratch_bytes`` of scratch memory a worker when their length is no multiple of the vectors'.
"""

from delegraph_numba_cpu.blocks import Block

ROWS = "source target rows length tiles scratch scratch_bytes"

SOFTMAX = Block("softmax", "softmax", f"{ROWS} beta:f")
LOG_SOFTMAX = Block("log_softmax", "softmax", ROWS)

SOFTMAX_8_BIT = Block(
    "softmax_8_bit",
    "softmax",
    "source target rows length tiles table flip scale:f half:f zero_point",
)
"""``table`` holds the exponential of every difference to a row's maximum, by its low 8 bits.

``flip`` is 128 for int8, which are compared as unsigned numbers after that bit is flipped, and
``zero_point`` is added to results, whose low 8 bits are stored, after a limit at 255.
"""
