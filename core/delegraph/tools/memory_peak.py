"""The point of an execution plan at which most memory is in use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from delegraph.delegation.placement import PartitionPlacement, node_numbers
from delegraph.memory import TensorUsageRecord, live_bytes


@dataclass(frozen=True)
class Peak:
    """The point of the execution plan at which most memory is in use.

    Attributes:
        position: position in the execution plan.
        node: index of the node in the execution plan. A partition has an index after those of the
            model's nodes.
        operator: name of the node's operator; of a partition, its delegate.
        bytes: number of bytes in use.
        tensors: positions of the tensors in use, the largest first.
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


def peak_of(
    records: Sequence[TensorUsageRecord],
    nodes: Sequence[int],
    operators: Sequence[str],
    alignment: int,
    partitions: Mapping[int, PartitionPlacement],
) -> Peak | None:
    """Return the point at which most memory is in use; None if no tensor is in the arena.

    Args:
        records: tensors that share the arena.
        nodes: index of the node at each position of the execution plan.
        operators: name of the node at each position.
        alignment: number of bytes of which offsets are multiples.
        partitions: partitions by the index of their node.
    """
    tasks, used = live_bytes(records, alignment)
    if not len(used):
        return None
    position = int(tasks[int(used.argmax())])
    alive = [i for i, r in enumerate(records) if r.first_task <= position <= r.last_task]
    alive.sort(key=lambda i: bytes_of(records[i]), reverse=True)
    node = nodes[position] if position < len(nodes) else -1
    operator = operators[position] if position < len(operators) else ""
    where = node_in_words(node, operator, partitions.get(node))
    return Peak(position, node, operator, int(used.max()), tuple(alive), where)


def node_in_words(node: int, operator: str, partition: PartitionPlacement | None) -> str:
    """Return a node with its operator, or a partition with the model's nodes in it, in words."""
    if partition is None:
        return f"node {node}, {operator}"
    nodes = f"node{'s' * (len(partition.nodes) > 1)} {node_numbers(partition.nodes)}"
    return f"partition {partition.index} of {partition.delegate} ({nodes})"
