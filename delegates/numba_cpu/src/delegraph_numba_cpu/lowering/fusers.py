"""Order in which fusers are tried."""

from __future__ import annotations

from delegraph_numba_cpu.lowering.convolution.attention_f32 import fuse_attention
from delegraph_numba_cpu.lowering.convolution.conv_fusion import fuse_layer
from delegraph_numba_cpu.lowering.convolution.inverted_residual_f32 import fuse_inverted_residual
from delegraph_numba_cpu.lowering.convolution.inverted_residual_int8 import fuse_strip
from delegraph_numba_cpu.lowering.elementwise.elementwise_f32 import fuse_chain
from delegraph_numba_cpu.lowering.fusion import Fuser

# The first that takes a node has it. Only the first two ever want the same node: a convolution that
# begins an inverted residual is a layer as well, so the larger step is asked for first. Strips
# begin with convolutions of bytes, attention with a product, which comes before the scale and the
# mask that chains, which begin with element-wise nodes, would take.
FUSERS: tuple[Fuser, ...] = (
    fuse_inverted_residual,
    fuse_layer,
    fuse_strip,
    fuse_attention,
    fuse_chain,
)
"""Fusers, in the order in which each node without a step is offered to them."""
