"""Instructions of ``kernels/conv_int8.py``: convolutions and matrix products of 8-bit integers.

Some declare records, to which words of other instructions point. A record describes weights or
windows, independent of the place of the data.
"""

from delegraph_numba_cpu.instructions import Instruction

FAMILY = "conv_int8"

MATRIX = Instruction(
    "matrix",
    FAMILY,
    "weights headers depth steps block_bytes outputs low high rounding out_flip sum_factor",
)
"""Weights ``[K, O]`` in blocks of 16 outputs: ``[O / 16][K / 4][16][4]`` bytes.

Each complete group of 64 outputs is in the order of ``dot_products.zipped``. Results of these
groups are clamped to unsigned bytes, and then xored with ``out_flip``. Their headers add that
number, too.

``depth`` is K, ``steps`` is K / 4 rounded up, ``block_bytes`` is 64 * steps. Weights that were
shifted to fit signed bytes have a ``sum_factor`` other than 0. It is multiplied by the sum of a
row's activations and added to the row's accumulators.
"""

WINDOWS = Instruction(
    "windows",
    FAMILY,
    "height width channels out_height out_width kernel_h kernel_w stride_h stride_w "
    "dilation_h dilation_w top left zero flip row_bytes is_transposed line_bytes",
)
"""Description of how windows of an image become rows of a matrix.

``flip`` is xored with the bytes of the image; 128 makes int8 unsigned. ``zero`` is the byte around
the image, which is not flipped. ``row_bytes`` is the length of a window, rounded up to a multiple
of 4. A transposed convolution has the strides of the convolution from output to input.

``line_bytes`` is 0, or the bytes of a line with its padding, for the layout ``LINES``. Then each
line of a window is rounded up to a multiple of 4, and ``row_bytes`` is the sum.
"""

CONVOLVE = Instruction(
    "convolve",
    FAMILY,
    "x y windows matrix pixels step layout row_tiles column_tiles in_image matrix_image scratch "
    "scratch_bytes",
)
"""Convolution or product for CONV_2D, FULLY_CONNECTED, TRANSPOSE_CONV and BATCH_MATMUL.

``pixels`` pixels of the output are split into ``row_tiles``, blocks of 16 outputs into
``column_tiles``. A stack of products has this number of tiles for each product. Inputs of
consecutive products are ``in_image`` bytes apart, and records of their matrices ``matrix_image``
bytes.

``step`` windows at a time are written to scratch memory as unsigned bytes. With the ``layout``
``DIRECT``, the input already has them as rows; with ``FLIPPED``, as rows of signed bytes. With
``LINES``, windows are read from the image's lines, which are written to scratch memory with their
padding. The scratch memory has, after the accumulators, the addresses of ``step`` windows and
``SPARE_WINDOWS`` copies of the last one, and then the lines. If the length of a window's line is no
multiple of 4, zeros follow the weights of the line.
"""

SPARE_WINDOWS = 16
"""Number of addresses after those of the windows, which the last micro-kernel may read."""

WINDOWED, FLIPPED, DIRECT, LINES = range(4)

PACK_STACK = Instruction(
    "pack_stack",
    FAMILY,
    "source weights headers matrices header matrix images depth outputs zero weight_zero tiles",
)
"""Packing of a stack of computed matrices, ``[images, outputs, depth], int8``, as for ``MATRIX``.

The header and the record of each image's matrix are copies of ``header`` and ``matrix``, with
other addresses and biases. ``zero`` is the zero point of activations, as kernels read it.
"""

HEADER = {
    "bias": 0, "scale": 64, "offset": 128, "below": 192, "factor": 256, "exact_offset": 384,
    "away": 512, "zero": 640,
}  # fmt: skip
"""Offset of each field of a header, which has 16 values: int32, 3 float32, 3 float64, int32.

An accumulator times ``scale``, plus ``offset``, is above the exact value; plus ``below``, it is
below the exact value. The two differ by at most twice ``NEAR``. Both offsets are 0.5 less than a
floor needs. With the rounding ``EXACT``, ``scale`` and ``offset`` are ``FRACTION`` times as large,
and ``offset`` is the one for a floor.
"""

HEADER_BYTES = 704

NEAREST, EXACT, EXACT_AWAY, EXACT_CLOSE = range(4)
"""Kinds of rounding.

``NEAREST``: in float32, halves to even. ``EXACT``: as in the official kernels, halves up.
``EXACT_AWAY``: halves away from zero. ``EXACT_CLOSE``: the same, for factors so small that float64
has too few bits for results.
"""

NEAR = 2.0**-13
"""Bound of the float32 error of results below 512; see ``conv_int8_output``.

A result is a product of at most 514 plus an offset. Rounding of the accumulator and of the scale
adds an error of 2**-23 of the product. The offset and the sum are rounded to 2**-16, and for
negative values, or to integers with a fraction, there is one more rounding. The total is less than
0.00011.
"""

FRACTION_BITS = 16
FRACTION = 1 << FRACTION_BITS
"""Number by which results are multiplied for the rounding ``EXACT``, so that they have fraction
bits."""

UNCERTAIN = int(2 * NEAR * FRACTION)
"""Least fraction with which the floor of a result is certain; others are computed in float64."""

ACC_BYTES = 4096 + 64
"""Number of bytes for accumulators and tile registers, at the start of scratch memory."""

SPLIT_ROWS, SPLIT_BYTES = 8, 64
"""Largest number of int16 rows that some levels multiply together, and their scratch bytes per
step.

This scratch memory lies between accumulators and sums.
"""
