"""Blocks of ``kernels/conv_int16.py``: 16-bit activations times 8-bit weights.

Windows are laid out as those of bytes are, see ``conv_int8.WINDOWS``; there a channel is two bytes.
"""

from delegraph_numba_cpu.instructions import Instruction

FAMILY = "conv_int16"

_COMMON = "x y windows weights headers outputs pixels step low high rounding tiles scratch"

CONVOLVE = Instruction("convolve_int16", FAMILY, f"{_COMMON} scratch_bytes pairs")
"""Every output from every channel: CONV_2D and FULLY_CONNECTED.

``weights`` are ``[O / 16][pairs][16][2]``, int16: two neighbours in a window, of 16 outputs.
``pixels`` of the output are split into ``tiles``, and ``step`` windows are laid out at a time.
"""

DEPTHWISE = Instruction("depthwise_int16", FAMILY, f"{_COMMON} scratch_bytes taps")
"""DEPTHWISE_CONV_2D of one output a channel; ``weights`` are ``[O / 16][taps][16]``, int16."""

HEADER = {"bias": 0, "multiplier": 128, "first": 256, "second": 384}
"""Where 16 of each are in a header of 16 outputs: int64; ``multiplier`` may be float64."""

HEADER_BYTES = 512

FIXED_POINT, REAL = range(2)
"""Roundings: ``(sum * multiplier) >> first >> second``, each shift to the nearest, halves up; the
product in float64, halves away from zero."""

LANES = 16

ROWS = 4
"""Windows that a micro-kernel multiplies at a time, and reads where there are fewer."""

PAIRS_A_CHUNK = 128
"""Products are added up in 32 bits, and sums of so many pairs in 64 bits."""

MOST_TAPS = 256
"""The same for depthwise convolutions, whose windows are never longer."""

SUMS_BYTES = 8 * LANES * ROWS
ACC_BYTES = SUMS_BYTES + 64
"""At the start of scratch memory: sums, and a row of results."""
