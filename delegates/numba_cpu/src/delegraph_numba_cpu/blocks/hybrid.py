"""Blocks of ``kernels/hybrid.py``: float activations quantised on the fly, times 8-bit weights.

Activations are quantised row by row: what has a scale of its own, a row of a matrix or an image.
"""

from delegraph_numba_cpu.blocks import Block

FAMILY = "hybrid"

MEASURE = Block("measure", FAMILY, "x ranges rows size pieces tiles")
"""Smallest and largest value of each piece of each row of ``size`` values, and of 0.

``ranges`` is ``[rows, pieces, 2], float32``; all pieces but a row's last are equally long.
"""

QUANTIZE = Block(
    "quantize", FAMILY, "x y ranges scales rows size pieces row_bytes is_asymmetric tiles"
)
"""Rows as unsigned bytes, 128 above their int8, ``row_bytes`` apart.

``scales`` has 8 bytes a row: scale, float32, and zero point, int32.
"""

ROUND = Block("round", FAMILY, "x y ranges rows size pieces tiles")
"""Float32 rows again, of the values that their bytes with zero points would have."""

MULTIPLY = Block(
    "multiply",
    FAMILY,
    "x y scales windows weights headers block_bytes outputs layout step row_tiles column_tiles "
    "pixels image_pixels low:f high:f scratch scratch_bytes",
)
"""Windows of the quantised activations times weights, as float32.

Weights are in blocks as in ``conv_int8.MATRIX``, all in their own order, with a ``HEADER`` each.
``windows`` and the split into tiles are as for ``conv_int8.CONVOLVE``, and so is ``step``. Each
``image_pixels`` of the output have a scale of their own.
"""

WINDOWED, DIRECT = range(2)
"""Layouts: windows are laid out in scratch memory; they are rows of the activations already."""

HEADER = {"bias": 0, "sum": 64, "scale": 128, "offset": 192}
"""Where 16 of each are in a header, which is as large as those of ``conv_int8``: what is added to
accumulators, int32; the sum of weights, int32; the scale of weights, float32; the bias, float32."""
