"""Order in which fusers are tried."""

from __future__ import annotations

from delegraph_numba_cpu.lowering.convolution.attention_f32 import fuse_attention
from delegraph_numba_cpu.lowering.convolution.conv_fusion import fuse_layer
from delegraph_numba_cpu.lowering.convolution.inverted_residual_f32 import fuse_inverted_residual
from delegraph_numba_cpu.lowering.convolution.inverted_residual_int8 import fuse_strip
from delegraph_numba_cpu.lowering.elementwise.elementwise_f32 import fuse_chain
from delegraph_numba_cpu.lowering.fusion import Fuser

# The first fuser that accepts a node gets the node. Only the first two ever accept the same node:
# the convolution that begins an inverted residual also begins a layer, so the larger fusion is
# tried first. Strips begin with int8 convolutions. Attention begins with a product, before the
# scale and the mask, which chains would accept.
FUSERS: tuple[Fuser, ...] = (
    fuse_inverted_residual,
    fuse_layer,
    fuse_strip,
    fuse_attention,
    fuse_chain,
)
"""All fusers, in the order in which each node that is not fused yet is offered to them."""
