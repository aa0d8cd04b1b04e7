"""Selects or reorders the partitions of a placement."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from delegraph.delegation.placement import Crossing, NodePlacement, PartitionPlacement, Placement
from delegraph.lazy_dataclass import replace


def placement_of_subgraphs(placement: Placement, numbers: Collection[int]) -> Placement:
    """Return the part of a placement that is about some subgraphs; partitions are renumbered.

    Args:
        placement: placement of the whole model.
        numbers: indices of the subgraphs.
    """
    nodes = [node for node in placement.nodes if node.subgraph in numbers]
    used = {node.partition for node in nodes}
    kept = [p for p in placement.partitions if p.index in used or p.subgraph in numbers]
    crossings = [crossing for crossing in placement.crossings if crossing.subgraph in numbers]
    return _renumbered(placement, nodes, kept, crossings)


def default_delegate_last(placement: Placement) -> Placement:
    """Return the placement with the default delegate's partitions after all others."""
    order = sorted(placement.partitions, key=lambda partition: partition.is_by_default)
    if all(partition.index == i for i, partition in enumerate(order)):
        return placement
    return _renumbered(placement, placement.nodes, order, placement.crossings)


def _renumbered(
    placement: Placement,
    nodes: Iterable[NodePlacement],
    partitions: Iterable[PartitionPlacement],
    crossings: Iterable[Crossing],
) -> Placement:
    """Return a copy of *placement* with these nodes, partitions and crossings.

    *crossings* are the tensors that pass between partitions. *partitions* are numbered from 0, in
    the given order.
    """
    kept = list(partitions)
    new = {partition.index: i for i, partition in enumerate(kept)}
    return replace(
        placement,
        nodes=tuple(
            node if node.partition is None else replace(node, partition=new[node.partition])
            for node in nodes
        ),
        partitions=tuple(
            replace(p, index=new[p.index], overlaps=tuple(new[i] for i in p.overlaps if i in new))
            for p in kept
        ),
        crossings=tuple(
            replace(
                crossing,
                source=None if crossing.source is None else new[crossing.source],
                target=None if crossing.target is None else new[crossing.target],
            )
            for crossing in crossings
        ),
    )
