"""Constants that the host stores in another form before the first run, once and for all."""

from __future__ import annotations

from delegraph_numba_cpu.lowering.registry import Call

WIDENERS = ("DENSIFY", "DEQUANTIZE")


def is_widened(call: Call, tensor: int) -> bool:
    """Return whether a tensor comes from a constant alone, through nodes that only widen it.

    Delegraph runs such nodes while preparing; their results are known when kernels are lowered.
    """
    for index in range(call.node.index):
        node, registration = call.context.get_node_and_registration(index)
        if tensor in node.outputs:
            if registration.name not in WIDENERS or not node.inputs:
                return False
            source = node.inputs[0]
            return call.context.tensors[source].is_constant or is_widened(call, source)
    return False
