"""Blocks of ``kernels/batch_matmul_f32.py``: a row of float32 times each matrix of a stack.

Each value of a matrix is needed once, so that matrices are read as they are.
"""

from __future__ import annotations

from delegraph_numba_cpu.instructions import Instruction

FAMILY = "batch_matmul_f32"

WORDS = "x y weights x_image weights_image images depth columns tiles"

DOTS = Instruction("dots", FAMILY, WORDS)
"""Rows of ``depth`` values, ``[images, 1, depth]``, times ``[images, columns, depth]``.

From one row or matrix to the next there are ``x_image`` and ``weights_image`` bytes: 0 where one is
for all. Results are ``[images, 1, columns]``.
"""

SUMS = Instruction("sums", FAMILY, WORDS)
"""The same, times ``[images, depth, columns]``."""
