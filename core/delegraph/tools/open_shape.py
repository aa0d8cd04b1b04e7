"""The first node of an execution plan with an output shape that is known only while invoking."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from delegraph.json_records import JsonRecord
from delegraph.tools.memory_peak import node_in_words

if TYPE_CHECKING:
    from delegraph.delegation.placement import PartitionPlacement
    from delegraph.runtime.subgraph import Subgraph


@dataclass(frozen=True, slots=True)
class OpenShape(JsonRecord):
    """An output whose shape is known only while invoking, and its node.

    Attributes:
        position: position of the node in the execution plan.
        node: index of the node.
        where: the node, or the partition and its nodes, in words.
        tensor: index of the output.
        name: name of the output in the file.
    """

    position: int
    node: int
    where: str
    tensor: int
    name: str

    def __str__(self) -> str:
        """Sentence that names the tensor and its node."""
        output = f"tensor {self.tensor} ({self.name})"
        return f"the shape of {output} is known only while invoking; it is made by {self.where}"


def first_open_shape(
    subgraph: Subgraph, partitions: Mapping[int, PartitionPlacement]
) -> OpenShape | None:
    """Return the first unknown output shape of a prepared subgraph; None if all are known.

    Args:
        subgraph: the subgraph, with its delegates applied.
        partitions: its partitions, by the index of their node.
    """
    if not subgraph.has_dynamic_tensors:
        return None
    node, registration, tensor = subgraph.steps.first_open()
    position = [each for each, _ in subgraph.steps.nodes].index(node)
    name = subgraph.tensors[tensor].name
    where = node_in_words(node.index, registration.name, partitions.get(node.index))
    return OpenShape(position, node.index, where, tensor, name)
