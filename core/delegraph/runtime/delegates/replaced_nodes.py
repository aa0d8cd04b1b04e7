"""The model's nodes that a delegate node replaced, with their registrations.

``original_nodes.py`` computes these nodes; this module only finds them.
"""

from __future__ import annotations

from collections.abc import Sequence

from delegraph.delegation.delegate import DelegateParams
from delegraph.lazy_dataclass import replace
from delegraph.operators.registration import Node
from delegraph.runtime.execution.steps import Step
from delegraph.runtime.subgraph import Subgraph


def original_nodes(
    subgraph: Subgraph, delegate_node: Node, *, only_kernels: bool
) -> tuple[Step, ...]:
    """Return the nodes that a delegate node replaced, and those that compute their constants.

    They are the steps of :class:`OriginalNodes`.

    A delegate may read constants as they are stored, without the DEQUANTIZE node in front of its
    partition. The original nodes read the result of that node, which may no longer be in memory.
    With *only_kernels*, a delegate node inside counts as the nodes that it replaced.
    """
    nodes = _replaced(subgraph, delegate_node, only_kernels)
    at_hand = {*delegate_node.inputs, *(i for node, _ in nodes for i in node.outputs)}
    missing = dict.fromkeys(i for node, _ in nodes for i in node.inputs if i not in at_hand)
    makers = _makers(subgraph, [i for i in missing if i >= 0])
    return (*(original_node(subgraph, index) for index in makers), *nodes)


def _replaced(subgraph: Subgraph, delegate_node: Node, only_kernels: bool) -> list[Step]:
    params: DelegateParams = delegate_node.options
    nodes: list[Step] = []
    for index in params.nodes_to_replace:
        step = original_node(subgraph, index)
        inner = [step]
        if only_kernels and step[0].delegate is not None:
            inner = _replaced(subgraph, step[0], only_kernels)
        has_kernels = not any(registration.is_unresolved for _, registration in inner)
        nodes += inner if has_kernels else [step]
    return nodes


def original_node(subgraph: Subgraph, index: int) -> Step:
    """Return node *index* of the model with the inputs that the model file declares."""
    node, registration = subgraph.plan.node(index)
    operators = subgraph.spec.operators
    if index < len(operators) and node.inputs != operators[index].inputs:
        node = replace(node, inputs=operators[index].inputs)
    return node, registration


def _makers(subgraph: Subgraph, wanted: Sequence[int]) -> list[int]:
    """Return the nodes that compute the tensors *wanted* from constants, in execution order."""
    maker = {i: op for op in subgraph.spec.operators for i in op.outputs} if wanted else {}
    found: set[int] = set()
    pending = list(wanted)
    while pending:
        operator = maker.get(pending.pop())
        if operator is not None and operator.index not in found:
            found.add(operator.index)
            pending += operator.inputs
    return sorted(found)
