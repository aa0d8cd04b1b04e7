"""Bounds: a rule for each kernel declares the bytes that rows access, checked before a run.

A rule follows from the kernel and the words of its block. It knows nothing of the lowering that
wrote the row, so a lowering that is wrong raises here, and no kernel gets to run it.

These rules are no part of ``instructions``, as kernels need not be compiled again when one changes.
"""

from __future__ import annotations

from delegraph_numba_cpu.bounds import arg_min_max as arg_min_max  # these fill the table
from delegraph_numba_cpu.bounds import batch_matmul_f32 as batch_matmul_f32
from delegraph_numba_cpu.bounds import conv_f32 as conv_f32
from delegraph_numba_cpu.bounds import conv_hybrid as conv_hybrid
from delegraph_numba_cpu.bounds import conv_int8 as conv_int8
from delegraph_numba_cpu.bounds import conv_int16 as conv_int16
from delegraph_numba_cpu.bounds import depthwise_conv_f32 as depthwise_conv_f32
from delegraph_numba_cpu.bounds import depthwise_conv_int8 as depthwise_conv_int8
from delegraph_numba_cpu.bounds import elementwise as elementwise
from delegraph_numba_cpu.bounds import inverted_residual_f32 as inverted_residual_f32
from delegraph_numba_cpu.bounds import inverted_residual_int8 as inverted_residual_int8
from delegraph_numba_cpu.bounds import l2_normalization as l2_normalization
from delegraph_numba_cpu.bounds import lstm_f32 as lstm_f32
from delegraph_numba_cpu.bounds import lstm_int8 as lstm_int8
from delegraph_numba_cpu.bounds import moves as moves
from delegraph_numba_cpu.bounds import pooling as pooling
from delegraph_numba_cpu.bounds import reductions as reductions
from delegraph_numba_cpu.bounds import resize as resize
from delegraph_numba_cpu.bounds import softmax as softmax
from delegraph_numba_cpu.bounds import svdf as svdf
from delegraph_numba_cpu.bounds.rules import Overrun, check_row

__all__ = ["Overrun", "check_row"]
