"""Instructions of ``kernels/conv_hybrid.py``: floats quantized at run time, times 8-bit weights.

Activations are quantized by rows: a *row* is a matrix row or an image, and has a separate scale.
"""

from delegraph_numba_cpu.instructions import Instruction

FAMILY = "conv_hybrid"

MEASURE = Instruction("measure", FAMILY, "x ranges rows size pieces tiles")
"""Smallest and largest value, at most and at least 0, of each piece of each row of ``size`` values.

``ranges`` is ``[rows, pieces, 2], float32``; all pieces but a row's last are equally long.
"""

QUANTIZE = Instruction(
    "quantize", FAMILY, "x y ranges scales rows size pieces row_bytes is_asymmetric tiles"
)
"""Quantization of rows to unsigned bytes, which are int8 plus 128; rows are ``row_bytes`` apart.

``scales`` has 8 bytes per row: scale, float32, and zero point, int32.
"""

ROUND = Instruction("round", FAMILY, "x y ranges rows size pieces tiles")
"""Float32 rows, rounded to the values that quantization with zero points can represent."""

MULTIPLY = Instruction(
    "multiply",
    FAMILY,
    "x y scales windows weights headers block_bytes form parts steps outputs layout step row_tiles "
    "column_tiles pixels image_pixels low:f high:f scratch scratch_bytes",
)
"""Windows of the quantized activations times weights, as float32.

Weights have a ``form``, ``block_bytes`` bytes and a ``HEADER`` for 16 outputs. ``windows``, tiles
and ``step`` are those of ``conv_int8.CONVOLVE``. Each ``image_pixels`` pixels of the output have a
separate scale.
"""

BYTES, NIBBLES, PARTS = range(3)
"""Forms of weights, all in their own order.

``BYTES``: ``[groups of 64 outputs, steps, 64, 4], int8``, the last for four inputs.

``NIBBLES``: ``[groups of 64 outputs, steps, 64, 4], uint8``. A byte has two weights: the low half
one of the first four of eight inputs, the high half one of the others.

``PARTS``: so it is for each of ``parts`` parts of a row, ``[groups, parts, ...]``, which have
scales: after each part's bytes come those of 64 outputs, finite float16.
"""

GROUP_BYTES = 256
"""Number of bytes of 64 outputs: of a step of weights, and of accumulators."""

SCALE_BYTES = 128
"""Number of bytes of the scales of a part of 64 outputs."""

WINDOWED, DIRECT = range(2)
"""Layouts: windows are laid out in scratch memory; they are rows of the activations already."""

HEADER = {"bias": 0, "sum": 64, "scale": 128, "offset": 192}
"""Offset of each field of a header, which has 16 values.

``bias``: number added to accumulators, int32. ``sum``: sum of weights, int32. ``scale``: scale of
weights, float32. ``offset``: the bias, float32. If parts have scales, accumulators are float32,
and so are ``bias`` and ``sum``.
"""

HEADER_BYTES = 256
