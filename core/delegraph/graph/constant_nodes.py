"""Nodes that make a constant from a constant: those that widen weights stored as float16."""

from __future__ import annotations

from delegraph.graph.model import SubgraphSpec, column_of

_CONVERSIONS = ("DENSIFY", "DEQUANTIZE")


def constant_nodes(subgraph: SubgraphSpec) -> dict[int, int]:
    """Return the constant in the file by the node that converts it, in the order of the nodes.

    Every host computes such a node once, while it prepares the model.

    Source:
        tflite/kernels/{dequantize,densify}.cc: Prepare.
    """
    data = column_of(subgraph.tensors, "data")
    stored: dict[int, int] = {}  # tensor to the constant that it is made from
    found = {}
    for operator in subgraph.operators:
        if operator.name in _CONVERSIONS and len(operator.inputs) == len(operator.outputs) == 1:
            (read,), (written,) = operator.inputs, operator.outputs
            constant = stored.get(read, read)
            if constant >= 0 and data[constant] is not None:
                found[operator.index] = stored[written] = constant
    return found
