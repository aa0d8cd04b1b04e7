"""Instructions of ``kernels/conv_int16.py``: 16-bit activations times 8-bit weights.

Windows are described by ``conv_int8.WINDOWS``, for which an int16 channel counts as two bytes.
"""

from delegraph_numba_cpu.instructions import Instruction

FAMILY = "conv_int16"

_COMMON = "x y windows weights headers outputs pixels step low high rounding tiles scratch"

CONVOLVE = Instruction("convolve_int16", FAMILY, f"{_COMMON} scratch_bytes pairs")
"""CONV_2D and FULLY_CONNECTED: each output reads all channels.

``weights`` are ``[O / 16][pairs][16][2]``, int16: two neighbours in a window, of 16 outputs.
``pixels`` of the output are split into ``tiles``, and ``step`` windows are copied at a time.
"""

DEPTHWISE = Instruction("depthwise_int16", FAMILY, f"{_COMMON} scratch_bytes taps")
"""DEPTHWISE_CONV_2D with one output per channel; ``weights`` are ``[O / 16][taps][16]``, int16."""

HEADER = {"bias": 0, "multiplier": 128, "first": 256, "second": 384}
"""Offset in bytes of each field of a header, which has 16 int64; ``multiplier`` may be float64."""

HEADER_BYTES = 512

FIXED_POINT, REAL = range(2)
"""Roundings.

``FIXED_POINT``: ``(sum * multiplier) >> first >> second``, each shift to nearest, halves up.
``REAL``: the product in float64, halves away from zero.
"""

LANES = 16

ROWS = 4
"""Number of windows that a micro-kernel multiplies together, and reads even if there are fewer."""

PAIRS_A_CHUNK = 128
"""Largest number of pairs whose products are summed in 32 bits; their sums are added in 64 bits."""

MOST_TAPS = 256
"""Largest number of taps of a depthwise convolution, whose products are summed in 32 bits."""

SUMS_BYTES = 8 * LANES * ROWS
ACC_BYTES = SUMS_BYTES + 64
"""Number of bytes at the start of scratch memory: sums, and a row of results."""
