"""Which steps of several nodes are tried, and in which order."""

from __future__ import annotations

from delegraph_numba_cpu.operators.conv_layers import fuse_layer
from delegraph_numba_cpu.operators.elementwise_f32 import fuse_chain
from delegraph_numba_cpu.operators.fusion import Fuser
from delegraph_numba_cpu.operators.inverted_residual import fuse_inverted_residual
from delegraph_numba_cpu.operators.strips_int8 import fuse_strip

# The first that takes a node has it. Only the first two ever want the same node: a convolution that
# begins an inverted residual is a layer as well, so the larger step is asked for first. Strips
# begin with convolutions of bytes, chains with element-wise nodes.
FUSERS: tuple[Fuser, ...] = (fuse_inverted_residual, fuse_layer, fuse_strip, fuse_chain)
"""Asked in this order at each node, in execution order, that no step has yet."""
