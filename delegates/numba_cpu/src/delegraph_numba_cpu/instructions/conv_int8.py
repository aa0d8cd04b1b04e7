"""Blocks of ``kernels/conv_int8.py``: convolutions and matrix products of 8-bit integers.

Besides the blocks of the kernels, there are records of constants that blocks point to: what a
kernel needs to know of weights or windows, wherever the data is.
"""

from delegraph_numba_cpu.instructions import Instruction

FAMILY = "conv_int8"

MATRIX = Instruction(
    "matrix",
    FAMILY,
    "weights headers depth steps block_bytes outputs low high rounding out_flip sum_factor",
)
"""Weights ``[K, O]`` in blocks of 16 outputs: ``[O / 16][K / 4][16][4]`` bytes.

The outputs of each complete 64 are in the order of ``dot_products.zipped``. Their results are
clamped and stored as unsigned bytes, and then xored with ``out_flip``; headers of theirs add that
too.

``depth`` is K, ``steps`` K / 4 rounded up, ``block_bytes`` 64 * steps. ``sum_factor`` is what each
unit of a row's sum of activations adds to its accumulators: not 0 for weights that were shifted to
fit signed bytes.
"""

WINDOWS = Instruction(
    "windows",
    FAMILY,
    "height width channels out_height out_width kernel_h kernel_w stride_h stride_w "
    "dilation_h dilation_w top left zero flip row_bytes is_transposed",
)
"""How windows of an image become rows of a matrix.

``zero`` is the byte around the image, ``flip`` what is xored with the bytes of the image (128 makes
int8 unsigned), and ``zero`` is not flipped. ``row_bytes`` is the length of a window, rounded up to
a multiple of 4. Transposed: strides are those of the convolution from output to input.
"""

CONVOLVE = Instruction(
    "convolve",
    FAMILY,
    "x y windows matrix pixels step layout row_tiles column_tiles in_image matrix_image scratch "
    "scratch_bytes",
)
"""CONV_2D, FULLY_CONNECTED, TRANSPOSE_CONV and BATCH_MATMUL.

``pixels`` of the output are split into ``row_tiles``, blocks of 16 outputs into ``column_tiles``.
In a stack of products these are those of one, ``in_image`` and ``matrix_image`` are the bytes from
one input and one record of a matrix to the next, and there are as many tiles again for each.
``step`` windows at a time are laid out in scratch memory as unsigned bytes, unless the ``layout``
is ``DIRECT``: then they are rows of the input already; ``FLIPPED`` ones are so but for their sign.
"""

WINDOWED, FLIPPED, DIRECT = range(3)

PACK_STACK = Instruction(
    "pack_stack",
    FAMILY,
    "source weights headers matrices header matrix images depth outputs zero weight_zero tiles",
)
"""A stack of computed matrices, ``[images, outputs, depth], int8``, as ``MATRIX`` wants them.

Every image's header and record of its matrix are copies of ``header`` and ``matrix``, but for
addresses and what zero points add to biases. ``zero`` is the zero point of activations as kernels
see them.
"""

HEADER = {
    "bias": 0, "scale": 64, "offset": 128, "below": 192, "factor": 256, "exact_offset": 384,
    "away": 512, "zero": 640,
}  # fmt: skip
"""Where 16 of each are in a header: int32, three of float32, three of float64, int32.

With an accumulator times ``scale``, ``offset`` gives more than the exact value and ``below`` less,
by up to twice ``NEAR``; both are 0.5 lower than a floor wants them.
"""

HEADER_BYTES = 704

NEAREST, EXACT, EXACT_AWAY, EXACT_CLOSE = range(4)
"""Roundings: float32 and halves to even; as the official kernels, halves up; halves away.

The last one is like the one before, for factors so small that float64 has too few bits for results.
"""

NEAR = 2.0**-13
"""More than results below 512 can be off in float32; see ``conv_int8_output``.

They are a product of at most 514, off by 2**-23 of that because an accumulator and a scale were
rounded, and an offset, which like the sum is rounded to 2**-16, and for negative values once more:
altogether less than 0.00011.
"""

ACC_BYTES = 4096 + 64
"""At the start of scratch memory, for accumulators, and how matrix registers are laid out."""

SPLIT_ROWS, SPLIT_BYTES = 7, 64
"""Some levels multiply rows of int16, so many at a time; scratch memory for each step of them.

It lies between accumulators and sums.
"""
