"""The placement of a running model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from delegraph.delegation.delegate import Delegate
from delegraph.delegation.placement import NodePlacement, PartitionPlacement, Placement
from delegraph.runtime.subgraph import Subgraph


def placement_of(subgraphs: Sequence[Subgraph], delegates: Sequence[Delegate]) -> Placement:
    """Return where every node of *subgraphs* runs, *delegates* being those applied."""
    partitions: list[PartitionPlacement] = []
    nodes: list[NodePlacement] = []
    for subgraph in subgraphs:
        subgraph.plan.redo()
        first = len(partitions)
        partitions += _partitions(subgraph, first)
        nodes += _nodes(subgraph, {p.node_index: p for p in partitions[first:]})
    names = tuple(delegate.name() for delegate in delegates)
    return Placement(tuple(nodes), tuple(partitions), names)


def _partitions(subgraph: Subgraph, first: int) -> list[PartitionPlacement]:
    plan = subgraph.plan
    members: dict[int, list[int]] = {}
    for operator in subgraph.spec.operators:
        members.setdefault(plan.current(operator.index), []).append(operator.index)
    found = [node for node, _ in plan.steps() if node.delegate is not None]
    return [
        PartitionPlacement(
            subgraph.spec.index,
            cast("Delegate", node.delegate).name(),
            first + i,
            node.index,
            tuple(members[node.index]),
            node.inputs,
            node.outputs,
        )
        for i, node in enumerate(found)
    ]


def _nodes(subgraph: Subgraph, partitions: dict[int, PartitionPlacement]) -> list[NodePlacement]:
    found = []
    for operator in subgraph.spec.operators:
        partition = partitions.get(subgraph.plan.current(operator.index))
        rejections = {
            applied.delegate.name(): applied.rejections[operator.index]
            for applied in subgraph.plan.applied
            if operator.index in applied.rejections
        }
        found.append(
            NodePlacement(
                subgraph.spec.index,
                operator.index,
                operator.name,
                None if partition is None else partition.delegate,
                None if partition is None else partition.index,
                rejections,
            )
        )
    return found
