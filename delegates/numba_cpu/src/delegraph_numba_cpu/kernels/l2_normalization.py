"""The kernel of L2_NORMALIZATION: each row divided by its Euclidean norm."""

from __future__ import annotations

import numpy as np

from delegraph_numba_cpu.codegen.intrinsics import jit
from delegraph_numba_cpu.codegen.row_passes import add, float_kernel, row_pass
from delegraph_numba_cpu.instructions.l2_normalization import L2_NORMALIZATION

ZERO, EPSILON = np.float32(0.0), np.float32(1e-6)

squares = row_pass(lambda x, a, b: x * x, 0.0, add)
divided = row_pass(lambda x, divisor, b: x / divisor)


@jit
def l2_normalization_row(source, target, rest, results, whole, count, beta):
    """Write a row divided by its Euclidean norm, or by 1e-6 if the norm is less.

    See ``row_passes.row_pass`` for arguments.
    """
    length = np.sqrt(squares(source, target, rest, results, whole, count, ZERO, ZERO))
    divisor = EPSILON if length < EPSILON else length
    divided(source, target, rest, results, whole, count, divisor, ZERO)


float_kernel(L2_NORMALIZATION, l2_normalization_row, ZERO)
