"""Kernels of the family that measures the processor, and their words; see ``kernels/roof.py``.

No program calls them, so they have no :class:`Instruction`.
"""

MULTIPLY_F32 = "multiply_f32"
"""Add the product of two vectors of float32 to several sums, ``ROUNDS`` times."""

MULTIPLY_INT8 = "multiply_int8"
"""Add dot products of four bytes to several sums of int32, ``ROUNDS`` times."""

READ = "read"
"""Add up all int32 of ``BYTES`` bytes, ``ROUNDS`` times.

The bytes of tile *t* follow those of tile *t* - 1.
"""

ROUNDS, AMOUNT, SOURCE, BYTES, FACTORS, SUMS = 0, 1, 2, 3, 8, 24
"""Words of a call: four numbers, two vectors of 64 bytes, and the results of all tiles.

The kernel writes ``AMOUNT``: the number of operations or bytes of one round of one tile. A
multiply-add is two operations. The result of a tile is a vector of 64 bytes, the total of all its
sums.
"""

RESULT_WORDS = 8
"""Number of words of a tile's result."""

READ_STEP = 512
"""Number of which ``BYTES`` is a multiple."""
