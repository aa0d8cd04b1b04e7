"""Turns the nodes of a partition into rows of a program.

Fusers come first; nodes that no fuser takes are lowered one by one, in execution order.
"""

from __future__ import annotations

from delegraph_numba_cpu.lowering import OPERATORS
from delegraph_numba_cpu.lowering.convolution.attention_f32 import fuse_attention
from delegraph_numba_cpu.lowering.convolution.conv_fusion import fuse_layer
from delegraph_numba_cpu.lowering.convolution.inverted_residual_f32 import fuse_inverted_residual
from delegraph_numba_cpu.lowering.convolution.inverted_residual_int8 import fuse_strip
from delegraph_numba_cpu.lowering.elementwise.elementwise_f32 import fuse_chain
from delegraph_numba_cpu.lowering.fusion import Fuser, Fusion, Partition
from delegraph_numba_cpu.program.builder import ProgramBuilder

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


def lower_all(partition: Partition, builder: ProgramBuilder) -> None:
    """Add to the program the kernel calls that compute all nodes of a partition."""
    fused = _fusions(partition, builder)
    taken = {member for fusion in fused.values() for member in fusion.members}
    for position, call in enumerate(partition.calls):
        if position in fused:
            members = sorted(fused[position].members)
            nodes = (partition.calls[member].node.index for member in members)
            builder.nodes = tuple(dict.fromkeys(nodes))
            fused[position].lower(builder)
        elif position not in taken:
            builder.nodes = (call.node.index,)
            OPERATORS[call.name].lower(call, builder)


def _fusions(partition: Partition, builder: ProgramBuilder) -> dict[int, Fusion]:
    """Return the fusions of nodes, by the position of their last node."""
    found: dict[int, Fusion] = {}
    taken: set[int] = set()
    for position in range(len(partition.calls)):
        for fuser in FUSERS:
            if position in taken:
                break
            fusion = fuser(partition, position, builder)
            if fusion is None or not taken.isdisjoint(fusion.members):
                continue
            if not _reads_variables_late(partition, fusion):
                found[max(fusion.members)] = fusion
                taken.update(fusion.members)
    return found


def _reads_variables_late(partition: Partition, fusion: Fusion) -> bool:
    """Whether fused nodes would read a variable after another node may have written it.

    They run at the position of the last of them.
    """
    last = max(fusion.members)
    for member in fusion.members:
        call = partition.calls[member]
        for tensor in call.node.inputs:
            if tensor >= 0 and call.context.tensors[tensor].is_variable:
                others = set(partition.readers(tensor)).difference(fusion.members)
                if any(member < other < last for other in others):
                    return True
    return False
