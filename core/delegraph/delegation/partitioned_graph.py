"""Interfaces of a partition and of the subgraph that contains it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from delegraph.operators.registration import Node, Registration
from delegraph.operators.tensor import Tensor


class PartitionedGraph(Protocol):
    """Interface of the subgraph that contains a partition; ``DelegateContext`` implements it."""

    @property
    def tensors(self) -> Sequence[Tensor]:
        """All tensors of the subgraph, by index."""

    @property
    def inputs(self) -> Sequence[int]:
        """Tensor indices of the subgraph's inputs."""

    @property
    def outputs(self) -> Sequence[int]:
        """Tensor indices of the subgraph's outputs."""

    @property
    def subgraph_names(self) -> Sequence[str]:
        """Names of the model's subgraphs, by index."""

    def get_execution_plan(self) -> tuple[int, ...]:
        """Return node indices in execution order, delegates' nodes included."""

    def get_node_and_registration(self, node_index: int) -> tuple[Node, Registration]:
        """Return the node with an index, and its registration."""

    def acquire_subgraph_context(self, index: int) -> PartitionedGraph:
        """Return the subgraph *index* of the model."""


class Partition(Protocol):
    """Interface of a partition: nodes, inputs and outputs; ``DelegateParams`` implements it."""

    @property
    def nodes_to_replace(self) -> Sequence[int]:
        """Indices of the partition's nodes, in execution order."""

    @property
    def input_tensors(self) -> Sequence[int]:
        """Indices of tensors that the partition reads but does not compute."""

    @property
    def output_tensors(self) -> Sequence[int]:
        """Indices of tensors that the partition computes and other nodes or the user read."""
