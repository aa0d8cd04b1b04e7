"""The operators this delegate takes: when, and as which kernel calls.

A file is named by its operator or family, in the schema's words, and registers it for all types:
``conv.py``, ``softmax.py``, ``lstm.py``. Element-wise operators have a file for each type:
``elementwise_f32``, ``elementwise_int8`` (with ``lookup`` and ``pairs``), ``elementwise_int32``.
What several operators share is in ``checks``, ``moves``, ``move_checks``, ``chains``, ``rows``,
``products_*`` and ``packing_*``. Fusers are in ``conv_layers``, ``inverted_residual``,
``strips_int8`` and ``elementwise_f32``.
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
from delegraph_numba_cpu.operators import elementwise_int8 as elementwise_int8
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
from delegraph_numba_cpu.operators.conv_layers import fuse_layer
from delegraph_numba_cpu.operators.elementwise_f32 import fuse_chain
from delegraph_numba_cpu.operators.fusion import Fuser
from delegraph_numba_cpu.operators.inverted_residual import fuse_inverted_residual
from delegraph_numba_cpu.operators.registry import OPERATORS, Call, Operator
from delegraph_numba_cpu.operators.strips_int8 import fuse_strip

# The first that takes a node has it. Only the first two ever want the same node: a convolution that
# begins an inverted residual is a layer as well, so the larger step is asked for first. Strips
# begin with convolutions of bytes, chains with element-wise nodes.
FUSERS: tuple[Fuser, ...] = (fuse_inverted_residual, fuse_layer, fuse_strip, fuse_chain)
"""Asked in this order at each node, in execution order, that no step has yet."""

__all__ = ["FUSERS", "OPERATORS", "Call", "Operator"]
