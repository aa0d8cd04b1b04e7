"""Instructions of ``kernels/batch_matmul_f32.py``: a row of float32 times each matrix of a stack.

Each value of a matrix is read once, so matrices are not packed.
"""

from __future__ import annotations

from delegraph_numba_cpu.instructions import Instruction

FAMILY = "batch_matmul_f32"

WORDS = "x y weights x_image weights_image images depth columns tiles"

DOTS = Instruction("dots", FAMILY, WORDS)
"""Products of ``images`` rows, ``[images, 1, depth]``, and matrices ``[images, columns, depth]``.

Rows are ``x_image`` bytes apart, and matrices ``weights_image`` bytes: 0 for one matrix that all
products share. Results are ``[images, 1, columns]``.
"""

SUMS = Instruction("sums", FAMILY, WORDS)
"""Products as of :data:`DOTS`, but with matrices ``[images, depth, columns]``."""
