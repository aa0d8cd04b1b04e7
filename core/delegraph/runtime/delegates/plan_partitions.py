"""The present execution plan of a subgraph, cut into subsets for a delegate.

Source:
    PartitionGraph, tflite/core/subgraph.cc. Unlike there, control edges follow their nodes when
    earlier delegates have made the plan shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delegraph.delegation.partitioner import (
    ControlEdge,
    GraphInfo,
    NodeInfo,
    NodeSubset,
    partition_graph_into_independent_node_subsets,
)
from delegraph.errors import ArgumentError
from delegraph.operators.registration import Node, Registration
from delegraph.schema.enums import BuiltinOperator, TensorType

if TYPE_CHECKING:
    from delegraph.runtime.subgraph import Subgraph

_CALLS_SUBGRAPHS = (BuiltinOperator.IF, BuiltinOperator.WHILE, BuiltinOperator.CALL_ONCE)


def partition_plan(subgraph: Subgraph, nodes: Sequence[int]) -> list[NodeSubset]:
    """Return the subsets into which taking *nodes* cuts the plan, in execution order.

    Raises:
        PartitionError: the graph cannot be partitioned.
        ArgumentError: a control edge of the model names no node.
    """
    plan, options = subgraph.plan, subgraph.session.options
    graph = GraphInfo(
        nodes=[
            NodeInfo(
                node.inputs, node.outputs, might_have_side_effect(subgraph, node, registration)
            )
            for node, registration in plan.steps()
        ],
        execution_plan=plan.execution_plan,
        num_total_nodes=len(plan.nodes),
        inputs=subgraph.inputs,
        outputs=subgraph.outputs,
        variables=subgraph.variables,
    )
    return partition_graph_into_independent_node_subsets(
        graph,
        list(nodes),
        greedily=not options.disable_delegate_clustering,
        control_edges=_control_edges(subgraph),
        disable_node_fusion=options.preserve_all_tensors or options.disable_delegate_node_fusion,
    )


def might_have_side_effect(subgraph: Subgraph, node: Node, registration: Registration) -> bool:
    """Whether a node must keep its order among others of which this is true."""
    if registration.builtin_code in _CALLS_SUBGRAPHS:
        return True
    tensors = subgraph.tensors
    return any(
        tensors[i].type == TensorType.RESOURCE for i in (*node.inputs, *node.outputs) if i >= 0
    )


def _control_edges(subgraph: Subgraph) -> list[ControlEdge] | None:
    """Return the model's control edges as positions in the present plan."""
    edges, plan = subgraph.session.control_edges, subgraph.plan
    if edges is None:
        return None
    position = {node: i for i, node in enumerate(plan.execution_plan)}
    moved = []
    for edge in edges[subgraph.spec.index]:
        for index in edge:
            if not 0 <= index < len(subgraph.spec.operators):
                raise ArgumentError(f"control edge of the model names node {index}")
        before, after = (position[plan.current(index)] for index in edge)
        if before != after:
            moved.append((before, after))
    return moved
