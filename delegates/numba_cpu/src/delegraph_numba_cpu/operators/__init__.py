"""The operators this delegate takes: when, and as which kernel calls."""

from __future__ import annotations

from delegraph_numba_cpu.operators import arranging as arranging  # these fill the table
from delegraph_numba_cpu.operators import batch_matmul_f32 as batch_matmul_f32
from delegraph_numba_cpu.operators import batch_matmul_int8 as batch_matmul_int8
from delegraph_numba_cpu.operators import conv_f32 as conv_f32
from delegraph_numba_cpu.operators import conv_int8 as conv_int8
from delegraph_numba_cpu.operators import conv_layers as conv_layers
from delegraph_numba_cpu.operators import elementwise as elementwise
from delegraph_numba_cpu.operators import hybrid as hybrid
from delegraph_numba_cpu.operators import integers as integers
from delegraph_numba_cpu.operators import inverted_residual as inverted_residual
from delegraph_numba_cpu.operators import joining as joining
from delegraph_numba_cpu.operators import lookup as lookup
from delegraph_numba_cpu.operators import lstm as lstm
from delegraph_numba_cpu.operators import moves as moves
from delegraph_numba_cpu.operators import padding as padding
from delegraph_numba_cpu.operators import pairs as pairs
from delegraph_numba_cpu.operators import picking as picking
from delegraph_numba_cpu.operators import pooling as pooling
from delegraph_numba_cpu.operators import quantizing as quantizing
from delegraph_numba_cpu.operators import reductions as reductions
from delegraph_numba_cpu.operators import resizing as resizing
from delegraph_numba_cpu.operators import rows as rows
from delegraph_numba_cpu.operators import slicing as slicing
from delegraph_numba_cpu.operators import strips_int8 as strips_int8
from delegraph_numba_cpu.operators import svdf_f32 as svdf_f32
from delegraph_numba_cpu.operators import svdf_int8 as svdf_int8
from delegraph_numba_cpu.operators import transpose_conv_f32 as transpose_conv_f32
from delegraph_numba_cpu.operators.registry import OPERATORS, Call, Operator

__all__ = ["OPERATORS", "Call", "Operator"]
