"""Blocks of ``kernels/conv_f32.py``: float32 sums of products over windows of an image.

All lengths are bytes, unless a name says otherwise. ``scratch`` is a piece of ``scratch_bytes`` for
each worker: first the taps' offsets, at ``rows_at`` the pixels' addresses, and at ``padded_at`` the
padded input rows of one chunk, or 0 when taps read the input itself.
"""

from delegraph_numba_cpu.blocks import Block

_WINDOWS = """
    x y weight residual scratch scratch_bytes rows_at padded_at
    images in_image in_row in_h out_image out_row out_h out_w
    row stride_row stride_column tap_rows tap_columns tap_row tap_column
    top left copied stride_h span chunk
    columns pitch low:f high:f sum_low:f sum_high:f
    column_tiles tiles
"""

CONV = Block("conv", "conv_f32", f"{_WINDOWS} tap_bytes")
"""Every output channel from every input channel: ``clamp(bias + sum) `` and, with a residual,
``clamp(that + residual)``.

Words: ``row`` lies between the rows that taps read (padded ones or the input's); a tile is a range
of output rows by a range of columns (output channels), worked on in chunks of ``chunk`` rows that
are next to each other; ``top`` counts rows and ``left`` bytes of padding, ``copied`` the bytes of
an input row that windows reach; ``span`` rows are under a window. ``pitch`` lies between output
pixels. ``weight``: see ``operators.conv_packing``.
"""

DEPTHWISE = Block("depthwise", "conv_f32", _WINDOWS)
"""Each output channel from the input channel of the same number."""

INVERTED_RESIDUAL = Block(
    "inverted_residual",
    "conv_f32",
    " ".join(
        [
            _WINDOWS,
            "ring ring_rows result_at",
            *(f"expand_{word}" for word in (*_WINDOWS.split(), "tap_bytes")),
            *(f"project_{word}" for word in (*_WINDOWS.split(), "tap_bytes")),
        ]
    ),
)
"""A depthwise convolution of expanded rows, and the convolution of single pixels behind it.

The first words are those of the depthwise part, which reads a ring of ``ring_rows`` padded rows of
``row`` bytes and one of zeros, for each worker; ``tap_row`` counts rows. ``expand_weight`` is 0
when rows are copied, not computed. What lies between: at ``result_at`` in the scratch.
"""

REPEAT = Block("repeat_channels", "conv_f32", "x y values times tiles")
"""Each of ``values`` float32 values ``times`` times."""

HEIGHTS = {64: 7, 32: 6, 16: 4}
"""Pixels of a tile of registers, by the bytes of a vector."""
