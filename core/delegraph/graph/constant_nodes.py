"""Nodes that convert a constant to another constant, such as float16 weights to float32."""

from __future__ import annotations

from delegraph.graph.model import SubgraphSpec, column_of

_CONVERSIONS = ("DENSIFY", "DEQUANTIZE")


def constant_nodes(subgraph: SubgraphSpec) -> dict[int, int]:
    """Return a mapping from each converting node to the constant it converts, in node order.

    Every host computes these nodes once, while it prepares the model.

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
