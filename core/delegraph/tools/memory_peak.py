"""The point of an execution plan at which most memory is in use."""

from __future__ import annotations

from dataclasses import dataclass

from delegraph.delegation.placement import PartitionPlacement, node_numbers
from delegraph.memory import TensorUsageRecord


@dataclass(frozen=True)
class Peak:
    """The point of the execution plan at which a memory plan has most bytes in use.

    Attributes:
        position: position in the execution plan.
        node: index of the node in the execution plan. A partition has an index after those of the
            model's nodes.
        operator: name of the node's operator; of a partition, its delegate.
        bytes: number of bytes of the arena in use.
        tensors: positions of the tensors in use, the largest first; kept inputs are among them.
        where: the node, or the partition and its nodes, in words.
    """

    position: int
    node: int
    operator: str
    bytes: int
    tensors: tuple[int, ...]
    where: str


def bytes_of(record: TensorUsageRecord) -> int:
    """Return the bytes of a tensor in an arena, whose size is no shape of a texture."""
    assert isinstance(record.size, int)
    return record.size


def node_in_words(node: int, operator: str, partition: PartitionPlacement | None) -> str:
    """Return a node with its operator, or a partition with the model's nodes in it, in words."""
    if partition is None:
        return f"node {node}, {operator}"
    nodes = f"node{'s' * (len(partition.nodes) > 1)} {node_numbers(partition.nodes)}"
    return f"partition {partition.index} of {partition.delegate} ({nodes})"
