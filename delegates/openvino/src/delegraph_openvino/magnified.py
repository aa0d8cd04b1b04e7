"""Finds float tensors that are quantized later, so that a rounding error may become a step."""

from __future__ import annotations

from collections.abc import Sequence

from delegraph import DelegateContext, Node, Rejection

_EXACT = (
    "ABS BROADCAST_TO CAST CEIL CONCATENATION DEPTH_TO_SPACE DEQUANTIZE EXPAND_DIMS FLOOR MAXIMUM "
    "MAX_POOL_2D MINIMUM MIRROR_PAD NEG PACK PAD REDUCE_MAX REDUCE_MIN RELU RELU6 RELU_0_TO_1 "
    "RESHAPE RESIZE_NEAREST_NEIGHBOR REVERSE_SEQUENCE REVERSE_V2 ROUND SELECT SELECT_V2 SIGN SLICE "
    "SPACE_TO_DEPTH SPLIT SPLIT_V SQUEEZE STRIDED_SLICE TOPK_V2 TRANSPOSE UNPACK ZEROS_LIKE"
)
EXACT = frozenset(_EXACT.split())
"""Operators that do not round, so that OpenVINO and TFLite give equal results."""

INTEGERS = frozenset({"INT16", "INT2", "INT4", "INT8", "UINT8"})
REASON = (
    "a later node quantizes its result, and OpenVINO rounds otherwise: the option quantized=true "
    "takes it"
)


def magnified_tensors(context: DelegateContext) -> frozenset[int]:
    """Return the indices of a subgraph's float tensors on which quantizing nodes depend.

    Quantizing nodes are QUANTIZE and hybrid layers (float inputs, integer weights). In a called
    subgraph, such as the body of a loop, outputs may become inputs again.
    """
    found: set[int] = set()
    steps = [context.get_node_and_registration(i)[0] for i in context.get_execution_plan()]
    while True:
        for node in reversed(steps):
            if _quantizes(node, context) or not found.isdisjoint(node.outputs):
                found.update(_floats(node.inputs, context))
        outputs = _floats(context.outputs, context)
        if not context.subgraph_index or found.isdisjoint(context.inputs) or outputs <= found:
            return frozenset(found)
        found |= outputs


def check_magnified(name: str, node: Node, magnified: frozenset[int]) -> bool | Rejection:
    """Return True, or a rejection of a node whose rounding errors a later node magnifies.

    *magnified* is the result of :func:`magnified_tensors`.
    """
    reached = next((i for i in node.outputs if i in magnified), None)
    if reached is None or name in EXACT:
        return True
    return Rejection("rounding", REASON, tensor=reached)


def _quantizes(node: Node, context: DelegateContext) -> bool:
    """Whether a node quantizes floats: it has float inputs and small integer tensors."""
    reads = {context.tensors[i].type.name for i in node.inputs if i >= 0}
    writes = {context.tensors[i].type.name for i in node.outputs if i >= 0}
    return "FLOAT32" in reads and not INTEGERS.isdisjoint(reads | writes)


def _floats(indices: Sequence[int], context: DelegateContext) -> set[int]:
    return {
        i
        for i in indices
        if i >= 0
        and context.tensors[i].type.name == "FLOAT32"
        and not context.tensors[i].is_constant
    }
