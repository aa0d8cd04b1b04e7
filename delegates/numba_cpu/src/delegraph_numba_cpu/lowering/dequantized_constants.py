"""Constants that the host converts to another type once, before the first run."""

from __future__ import annotations

from delegraph import Tensor
from delegraph_numba_cpu.lowering.registry import Call

WIDENERS = ("DENSIFY", "DEQUANTIZE")


def is_widened(call: Call, tensor: int) -> bool:
    """Whether a tensor holds a constant that was only converted to a wider type, as by DEQUANTIZE.

    Args:
        call: a node that reads the tensor.
        tensor: index of the tensor.
    """
    return widened_constant(call, tensor) is not None


def widened_constant(call: Call, tensor: int) -> Tensor | None:
    """Return the constant of which *tensor* is the form with a wider type; None if there is none.

    Delegraph converts these constants while preparing, so their values are known when kernels are
    lowered.

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
