"""Constants that the host stores in another form before the first run, once and for all."""

from __future__ import annotations

from delegraph import Tensor
from delegraph_numba_cpu.lowering.registry import Call

WIDENERS = ("DENSIFY", "DEQUANTIZE")


def is_widened(call: Call, tensor: int) -> bool:
    """Whether a tensor comes from a constant alone, through nodes that only widen it."""
    return widened_constant(call, tensor) is not None


def widened_constant(call: Call, tensor: int) -> Tensor | None:
    """The constant that a tensor is made of through nodes that only widen it; None without one.

    Delegraph runs such nodes while preparing; their results are known when kernels are lowered.
    """
    for index in range(call.node.index):
        node, registration = call.context.get_node_and_registration(index)
        if tensor in node.outputs:
            if registration.name not in WIDENERS or not node.inputs:
                return None
            source = call.context.tensors[node.inputs[0]]
            return source if source.is_constant else widened_constant(call, source.index)
    return None
