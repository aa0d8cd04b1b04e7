"""Instructions of ``kernels/batch_matmul_f32.py``: few rows of float32 times many matrices.

Matrices are not packed, because few products read each value.
"""

from __future__ import annotations

from delegraph_numba_cpu.instructions import Instruction

FAMILY = "batch_matmul_f32"

WORDS = "x y weights x_image weights_image images rows depth columns tiles"

DOTS = Instruction("dots", FAMILY, WORDS)
"""Products of matrices ``[images, rows, depth]`` and ``[images, columns, depth]``.

Left matrices are ``x_image`` bytes apart, right ones ``weights_image`` bytes; 0 means that all
products share one matrix. Results are ``[images, rows, columns]``.
"""

SUMS = Instruction("sums", FAMILY, WORDS)
"""Products of matrices ``[images, rows, depth]`` and ``[images, depth, columns]``.

The words are those of :data:`DOTS`.
"""
