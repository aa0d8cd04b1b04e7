"""Constants that the host converts to another type once, before the first run."""

from __future__ import annotations

from delegraph import Tensor
from delegraph_numba_cpu.lowering.registry import Call

WIDENERS = ("DENSIFY", "DEQUANTIZE")


def widened_constant(call: Call, tensor: int) -> Tensor | None:
    """Return the constant from which DEQUANTIZE and DENSIFY nodes compute *tensor*.

    The result is None for any other tensor. Delegraph computes these nodes while preparing, so the
    values of *tensor* are known when kernels are lowered.

    Args:
        call: a node that reads the tensor.
        tensor: index of the tensor.
    """
    for index in reversed(range(call.node.index)):
        node, registration = call.context.get_node_and_registration(index)
        if tensor in node.outputs:
            if registration.name not in WIDENERS or not node.inputs or node.inputs[0] < 0:
                return None
            tensor = node.inputs[0]
            if call.context.tensors[tensor].is_constant:
                return call.context.tensors[tensor]
    return None
