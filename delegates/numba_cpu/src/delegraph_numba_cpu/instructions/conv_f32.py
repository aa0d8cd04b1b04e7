"""Blocks of ``kernels/conv_f32.py``: float32 sums of products over windows of an image.

All lengths are bytes, unless a name says otherwise. ``scratch`` is a piece of ``scratch_bytes`` for
each worker: first the taps' offsets, at ``rows_at`` the pixels' addresses, and at ``padded_at`` the
padded input rows of one chunk, or 0 when taps read the input itself.
"""

from delegraph_numba_cpu.instructions import Instruction

WINDOWS = """
    x y weight residual scratch scratch_bytes rows_at padded_at
    images in_image in_row in_h out_image out_row out_h out_w
    row stride_row stride_column tap_rows tap_columns tap_row tap_column
    top left copied stride_h span chunk
    columns pitch low:f high:f sum_low:f sum_high:f
    column_tiles tiles
"""

CONV_WORDS = f"{WINDOWS} tap_bytes weight_image"

CONV = Instruction("conv", "conv_f32", CONV_WORDS)
"""Every output channel from every input channel: ``clamp(bias + sum) `` and, with a residual,
``clamp(that + residual)``.

Words: ``row`` lies between the rows that taps read (padded ones or the input's); a tile is a range
of output rows by a range of columns (output channels), worked on in chunks of ``chunk`` rows that
are next to each other; ``top`` counts rows and ``left`` bytes of padding, ``copied`` the bytes of
an input row that windows reach; ``span`` rows are under a window. ``pitch`` lies between output
pixels. ``weight``: see ``lowering/convolution/conv_f32_packing.py``; those of an image are
``weight_image`` after those of the one before.
"""

PACK = Instruction(
    "pack_matrix",
    "conv_f32",
    """
    source target images source_image target_image rows columns down across
    width last_width has_bias bias tiles
    """,
)
"""Matrices of ``rows`` by ``columns`` values in blocks of columns, as in :data:`CONV`.

``down`` and ``across`` are the bytes between rows and columns of the source, which may be those of
its transpose; ``has_bias`` asks for a row in front: the ``bias``, or zeros when
that is 0.
"""

HEIGHTS = {64: 7, 32: 6, 16: 6}
"""Pixels of a tile of registers, by the bytes of a vector."""
