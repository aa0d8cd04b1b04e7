"""Instructions of ``kernels/conv_hybrid.py``: floats quantized at run time, times 8-bit weights.

Activations are quantized by rows: a *row* is a matrix row or an image, and has a separate scale.
"""

from delegraph_numba_cpu.instructions import Instruction

FAMILY = "conv_hybrid"

MEASURE = Instruction("measure", FAMILY, "x ranges rows size pieces tiles")
"""Least and largest value, 0 included, of each piece of each row of ``size`` values.

``ranges`` is ``[rows, pieces, 2], float32``; all pieces but a row's last are equally long.
"""

QUANTIZE = Instruction(
    "quantize", FAMILY, "x y ranges scales rows size pieces row_bytes is_asymmetric tiles"
)
"""Quantisation of rows to unsigned bytes, which are int8 plus 128; rows are ``row_bytes`` apart.

``scales`` has 8 bytes per row: scale, float32, and zero point, int32.
"""

ROUND = Instruction("round", FAMILY, "x y ranges rows size pieces tiles")
"""Rounding of float32 rows to the values that quantisation with zero points can represent."""

MULTIPLY = Instruction(
    "multiply",
    FAMILY,
    "x y scales windows weights headers block_bytes form parts steps outputs layout step row_tiles "
    "column_tiles pixels image_pixels low:f high:f scratch scratch_bytes",
)
"""Products of windows of quantised activations and weights, as float32.

Weights have a ``form``, ``block_bytes`` bytes and a ``HEADER`` for 16 outputs. ``windows``, tiles
and ``step`` are those of ``conv_int8.CONVOLVE``. Each ``image_pixels`` pixels of the output have a
separate scale.
"""

BYTES, NIBBLES, PARTS = range(3)
"""Forms of weights.

``BYTES``: ``[groups of 64 outputs, steps, 64, 4], int8``; the last axis is for four inputs.

``NIBBLES``: ``[groups of 64 outputs, steps, 64, 4], uint8``. A byte has two weights for eight
inputs: the low half is for one of the first four inputs, the high half for one of the last four.

``PARTS``: bytes as of ``NIBBLES`` for each of ``parts`` parts of a row, ``[groups, parts, ...]``.
After the bytes of each part come its scales for 64 outputs, finite float16.
"""

ROWS = 16
"""Largest number of rows that a micro-kernel multiplies together; it reads as many even if fewer
count."""

GROUP_BYTES = 256
"""Number of bytes of one step of the weights of 64 outputs, and of 64 accumulators."""

SCALE_BYTES = 128
"""Number of bytes of the scales that a part has for 64 outputs."""

WINDOWED, DIRECT = range(2)
"""Layouts: windows are copied to scratch memory, or the activations already are rows of windows."""

HEADER = {"bias": 0, "sum": 64, "scale": 128, "offset": 192}
"""Offset in bytes of each field of a header, which has 16 values per field.

``bias``: number added to accumulators, int32. ``sum``: sum of weights, int32. ``scale``: scale of
weights, float32. ``offset``: the bias, float32. If parts have scales, accumulators are float32, and
so are ``bias`` and ``sum``.
"""

HEADER_BYTES = 256
