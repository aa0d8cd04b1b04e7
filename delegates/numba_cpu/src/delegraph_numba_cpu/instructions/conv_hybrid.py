"""Blocks of ``kernels/conv_hybrid.py``: floats quantised on the fly, times 8-bit weights.

Activations are quantised row by row: what has a scale of its own, a row of a matrix or an image.
"""

from delegraph_numba_cpu.instructions import Instruction

FAMILY = "conv_hybrid"

MEASURE = Instruction("measure", FAMILY, "x ranges rows size pieces tiles")
"""Smallest and largest value of each piece of each row of ``size`` values, and of 0.

``ranges`` is ``[rows, pieces, 2], float32``; all pieces but a row's last are equally long.
"""

QUANTIZE = Instruction(
    "quantize", FAMILY, "x y ranges scales rows size pieces row_bytes is_asymmetric tiles"
)
"""Rows as unsigned bytes, 128 above their int8, ``row_bytes`` apart.

``scales`` has 8 bytes a row: scale, float32, and zero point, int32.
"""

ROUND = Instruction("round", FAMILY, "x y ranges rows size pieces tiles")
"""Float32 rows again, of the values that their bytes with zero points would have."""

MULTIPLY = Instruction(
    "multiply",
    FAMILY,
    "x y scales windows weights headers block_bytes form parts steps outputs layout step row_tiles "
    "column_tiles pixels image_pixels low:f high:f scratch scratch_bytes",
)
"""Windows of the quantised activations times weights, as float32.

Weights have a ``form`` and take ``block_bytes`` for 16 outputs, which have a ``HEADER``.
``windows`` and the split into tiles are as for ``conv_int8.CONVOLVE``, and so is ``step``. Each
``image_pixels`` of the output have a scale of their own.
"""

BYTES, NIBBLES, PARTS = range(3)
"""Forms of weights, all in their own order.

``BYTES``: ``[groups of 64 outputs, steps, 64, 4], int8``, the last for four inputs.

``NIBBLES``: ``[groups of 64 outputs, steps, 64, 4], uint8``. A byte has two weights: the low half
one of the first four of eight inputs, the high half one of the others.

``PARTS``: so it is for each of ``parts`` parts of a row, ``[groups, parts, ...]``, which have
scales: after each part's bytes come those of 64 outputs, float32.
"""

GROUP_BYTES = 256
"""Bytes of 64 outputs: of a step of weights, of scales, and of accumulators."""

WINDOWED, DIRECT = range(2)
"""Layouts: windows are laid out in scratch memory; they are rows of the activations already."""

HEADER = {"bias": 0, "sum": 64, "scale": 128, "offset": 192}
"""Where 16 of each are in a header: what is added to accumulators, int32; the sum of weights,
int32; the scale of weights, float32; the bias, float32. Where there are parts, accumulators are
float32, and so are the first two."""

HEADER_BYTES = 256
