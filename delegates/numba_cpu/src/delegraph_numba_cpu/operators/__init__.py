"""The operators this delegate takes: when, and as which kernel calls.

A file is named by its operator or family, in the schema's words, and registers it for all types:
``conv.py``, ``softmax.py``, ``lstm.py``. Element-wise operators have a file for each type:
``elementwise_f32``, ``elementwise_int8`` (with ``lookup`` and ``pairs``), ``elementwise_int16``,
``elementwise_int32``.
What several operators share is in ``checks``, ``moves``, ``move_checks``, ``chains``, ``rows``,
``products_*`` and ``packing_*``. Fusers are in ``conv_layers``, ``inverted_residual``,
``strips_int8`` and ``elementwise_f32``; ``fusion_order.py``, one folder up, has their order.
"""

from __future__ import annotations

from delegraph_numba_cpu.operators import arg_min_max as arg_min_max  # these fill the table
from delegraph_numba_cpu.operators import batch_matmul as batch_matmul
from delegraph_numba_cpu.operators import cast as cast
from delegraph_numba_cpu.operators import comparison as comparison
from delegraph_numba_cpu.operators import concatenation as concatenation
from delegraph_numba_cpu.operators import conv as conv
from delegraph_numba_cpu.operators import depthwise_conv as depthwise_conv
from delegraph_numba_cpu.operators import dequantize as dequantize
from delegraph_numba_cpu.operators import dynamic_update_slice as dynamic_update_slice
from delegraph_numba_cpu.operators import elementwise_int8 as elementwise_int8
from delegraph_numba_cpu.operators import elementwise_int16 as elementwise_int16
from delegraph_numba_cpu.operators import elementwise_int32 as elementwise_int32
from delegraph_numba_cpu.operators import fill as fill
from delegraph_numba_cpu.operators import fully_connected as fully_connected
from delegraph_numba_cpu.operators import gather as gather
from delegraph_numba_cpu.operators import l2_normalization as l2_normalization
from delegraph_numba_cpu.operators import log_softmax as log_softmax
from delegraph_numba_cpu.operators import lstm as lstm
from delegraph_numba_cpu.operators import pack as pack
from delegraph_numba_cpu.operators import pad as pad
from delegraph_numba_cpu.operators import pooling as pooling
from delegraph_numba_cpu.operators import products_int16 as products_int16
from delegraph_numba_cpu.operators import quantize as quantize
from delegraph_numba_cpu.operators import reductions as reductions
from delegraph_numba_cpu.operators import reshape as reshape
from delegraph_numba_cpu.operators import resize as resize
from delegraph_numba_cpu.operators import reverse as reverse
from delegraph_numba_cpu.operators import select as select
from delegraph_numba_cpu.operators import slice as slice
from delegraph_numba_cpu.operators import softmax as softmax
from delegraph_numba_cpu.operators import space_batch as space_batch
from delegraph_numba_cpu.operators import space_depth as space_depth
from delegraph_numba_cpu.operators import split as split
from delegraph_numba_cpu.operators import strided_slice as strided_slice
from delegraph_numba_cpu.operators import svdf as svdf
from delegraph_numba_cpu.operators import tile as tile
from delegraph_numba_cpu.operators import transpose as transpose
from delegraph_numba_cpu.operators import transpose_conv as transpose_conv
from delegraph_numba_cpu.operators.registry import OPERATORS, Call, Operator

__all__ = ["OPERATORS", "Call", "Operator"]
