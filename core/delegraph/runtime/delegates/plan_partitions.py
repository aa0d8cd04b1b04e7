"""The present execution plan of a subgraph, cut into subsets for a delegate.

Source:
    PartitionGraph, tflite/core/subgraph.cc. Unlike there, control edges follow their nodes when
    earlier delegates have made the plan shorter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import TYPE_CHECKING

from delegraph.errors import ArgumentError
from delegraph.graph.model import SubgraphSpec, variables_of
from delegraph.operators.registration import Node, Registration
from delegraph.operators.tensor import Tensor
from delegraph.runtime.options import InterpreterOptions
from delegraph.schema.enums import BuiltinOperator, TensorType

if TYPE_CHECKING:
    from delegraph.delegation.partitioner import ControlEdge, NodeSubset

_CALLS_SUBGRAPHS = (BuiltinOperator.IF, BuiltinOperator.WHILE, BuiltinOperator.CALL_ONCE)


class PlanPartitioner:
    """Cuts the execution plan of one subgraph into node subsets.

    Args:
        spec: the subgraph as the model declares it.
        tensors: tensors of the subgraph, by index.
        options: options of the interpreter.
        control_edges: control edges of this subgraph in the model file; None if there are none.
    """

    def __init__(
        self,
        spec: SubgraphSpec,
        tensors: Sequence[Tensor],
        options: InterpreterOptions,
        control_edges: Sequence[ControlEdge] | None,
    ) -> None:
        self._spec = spec
        self._tensors = tensors
        self._options = options
        self._control_edges = control_edges
        self._variables = variables_of(spec)

    def subsets(
        self,
        nodes: Sequence[tuple[Node, Registration]],
        execution_plan: Sequence[int],
        current: Callable[[int], int],
        wanted: Sequence[int],
    ) -> list[NodeSubset]:
        """Return the subsets into which a plan is cut if a delegate claims *wanted*, in order.

        *current* returns the node of the plan that computes a node of the model.

        Raises:
            PartitionError: the graph cannot be partitioned.
            ArgumentError: a control edge of the model names no node.
        """
        from delegraph.delegation.partitioner import (  # lazy import: only delegates cut a plan
            GraphInfo,
            NodeInfo,
            partition_graph_into_independent_node_subsets,
        )

        spec, options = self._spec, self._options
        resources = {t.index for t in self._tensors if t.type is TensorType.RESOURCE}
        planned = [nodes[index] for index in execution_plan]
        graph = GraphInfo(
            nodes=[
                NodeInfo(node.inputs, node.outputs, _has_side_effect(node, registration, resources))
                for node, registration in planned
            ],
            execution_plan=execution_plan,
            num_total_nodes=len(nodes),
            inputs=spec.inputs,
            outputs=spec.outputs,
            variables=self._variables,
        )
        return partition_graph_into_independent_node_subsets(
            graph,
            list(wanted),
            greedily=not options.disable_delegate_clustering,
            control_edges=self.moved_edges(execution_plan, current),
            disable_node_fusion=options.preserve_all_tensors
            or options.disable_delegate_node_fusion,
        )

    def moved_edges(
        self, execution_plan: Sequence[int], current: Callable[[int], int]
    ) -> list[ControlEdge] | None:
        """Return the model's control edges as positions in *execution_plan*; None if it has none.

        An edge between two nodes that one node of the plan computes is left out. *current* maps a
        node of the model to the plan's node that computes it.

        Raises:
            ArgumentError: an edge names no node of the model.
        """
        if self._control_edges is None:
            return None
        position = {node: i for i, node in enumerate(execution_plan)}
        moved = []
        for edge in self._control_edges:
            for index in edge:
                if not 0 <= index < len(self._spec.operators):
                    raise ArgumentError(f"control edge of the model names node {index}")
            before, after = (position[current(index)] for index in edge)
            if before != after:
                moved.append((before, after))
        return moved


def _has_side_effect(node: Node, registration: Registration, resources: Set[int]) -> bool:
    """Whether a node calls subgraphs, or reads or writes a tensor in *resources*."""
    if registration.builtin_code in _CALLS_SUBGRAPHS:
        return True
    return not resources.isdisjoint(node.inputs) or not resources.isdisjoint(node.outputs)
