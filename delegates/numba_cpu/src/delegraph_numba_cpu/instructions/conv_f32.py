"""Instructions of ``kernels/conv_f32.py``: float32 sums of products over windows of an image.

All lengths are bytes, unless a name says otherwise. Each worker has ``scratch_bytes`` bytes at
``scratch``. They begin with the offsets of the taps. The pixels' addresses are at ``rows_at``. The
padded input rows of one chunk are at ``padded_at``, which is 0 if taps read the input itself.
"""

from delegraph_numba_cpu.instructions import Instruction

LIMITS = "low:f high:f sum_low:f sum_high:f columns residual_pitch residual_columns slopes"
"""Words that the output code reads together, from the address of the word ``low`` on."""

WINDOWS = f"""
    x y weight residual scratch scratch_bytes rows_at padded_at
    images in_image in_row in_h out_image out_row out_h out_w
    row stride_row stride_column tap_rows tap_columns tap_row tap_column
    top left copied stride_h span chunk
    pitch {LIMITS}
    column_tiles tiles
"""

CONV_WORDS = f"{WINDOWS} tap_bytes weight_image"

CONV = Instruction("conv", "conv_f32", CONV_WORDS)
"""A convolution in which each output channel reads all input channels: ``clamp(bias + sum)``.

With a residual, the result is ``clamp(clamp(bias + sum) + residual)``. With slopes, one for each
column, negative results are multiplied by them.

Words:
    row: bytes between the rows that taps read, in the padded rows or the input.
    chunk: number of adjacent output rows that are computed together. A tile is a range of output
        rows by a range of columns, which are output channels.
    top: number of rows of padding above the image.
    left: bytes of padding before a row.
    copied: bytes of an input row that windows read.
    span: number of rows of a window.
    pitch: bytes between output pixels.
    residual_pitch: bytes between the residual's pixels, which follow one another.
    residual_columns: number of the residual's columns; zeros are added to the columns after them.
    weight: see ``lowering/convolution/conv_f32_packing.py``; the weights of consecutive images are
        ``weight_image`` apart.
"""

PACK = Instruction(
    "pack_matrix",
    "conv_f32",
    """
    source target images source_image target_image rows columns down across
    width last_width has_bias bias tiles
    """,
)
"""Packing of matrices, ``rows`` by ``columns`` values, into blocks of columns as in :data:`CONV`.

``down`` and ``across`` are the bytes between rows and between columns of the source, which may be
transposed. With ``has_bias``, each block begins with one more row: the ``bias``, or zeros if
``bias`` is 0.
"""

HEIGHTS = {64: 7, 32: 6, 16: 6}
"""Number of pixels of a register tile, by the bytes of a vector."""
