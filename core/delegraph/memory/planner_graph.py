"""The interface by which the arena planner reads a subgraph, and the subgraph's last reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from itertools import chain
from typing import Protocol

import numpy as np

from delegraph.lazy_dataclass import dataclass


class TensorKind(Enum):
    """Owner of a tensor's memory, such as an arena."""

    ARENA_RW = "shared arena"
    ARENA_RW_PERSISTENT = "persistent arena"
    OTHER = "not the planner"


@dataclass(slots=True)
class PlanNode:
    """Inputs, outputs and temporaries of one node of the plan.

    Attributes:
        inputs: tensor indices; -1 for an absent input.
        outputs: tensor indices; -1 for an absent output.
        temporaries: indices of tensors that only this node uses; these may be set until memory is
            assigned.
        inplace: bits for the inputs that may share memory with output 0: 4, 8 and 16 for inputs 0,
            1 and 2, and 1 if the node leaves the data unchanged.
        held: indices of tensors that earlier, asynchronous nodes may still read while this node
            runs.
    """

    inputs: Sequence[int]
    outputs: Sequence[int]
    temporaries: Sequence[int] = ()
    inplace: int = 0
    held: Sequence[int] = ()


class PlannerGraph(Protocol):
    """Interface of a subgraph for the planner, which reads it at each planning."""

    @property
    def nodes(self) -> Sequence[PlanNode]:
        """Nodes of the subgraph in execution order."""

    @property
    def inputs(self) -> Sequence[int]:
        """Indices of the subgraph's input tensors; -1 for an absent input."""

    @property
    def outputs(self) -> Sequence[int]:
        """Indices of the subgraph's output tensors; -1 for an absent output."""

    @property
    def variables(self) -> Sequence[int]:
        """Tensor indices of the graph's variables."""

    @property
    def num_tensors(self) -> int:
        """Number of tensors; may grow, never shrinks."""

    def tensor_bytes(self, index: int) -> int:
        """Return the number of bytes that tensor *index* needs at present."""

    def tensor_kind(self, index: int) -> TensorKind:
        """Return the present owner of a tensor's memory: one of the two arenas, or another."""


class LastReads:
    """Tracks the last read of shared memory, to decide whether a node may overwrite an input.

    Args:
        nodes: nodes of the plan, in execution order; while a node runs, earlier asynchronous nodes
            may read the tensors in its ``held``.
        num_tensors: number of tensors of the graph.

    Attributes:
        counts: number of reads of each tensor, without reads of tensors that share its memory.
        of_memory: plan position at which each tensor's memory is read last; -1 for memory that is
            never read. The caller updates the list when tensors share memory.
    """

    def __init__(self, nodes: Sequence[PlanNode], num_tensors: int) -> None:
        self._reads = reads = [
            (*node.inputs, *node.held) if node.held else node.inputs for node in nodes
        ]
        lengths = np.fromiter(map(len, reads), np.intp, len(reads))
        tensors = np.fromiter(chain.from_iterable(reads), np.intp, int(lengths.sum()))
        last = np.full(num_tensors + 1, -1)  # the end is that of absent tensors, -1
        np.maximum.at(last, tensors, np.repeat(np.arange(len(reads)), lengths))
        self.of_memory: list[int] = last[:-1].tolist()
        self.counts: list[int] = np.bincount(tensors + 1, minlength=num_tensors + 1)[1:].tolist()

    def forbid(self, position: int, tensor: int, root_of: Mapping[int, int]) -> bool:
        """Whether the node at *position* must not overwrite the memory of *tensor*.

        The result is True if later nodes, or other inputs of this node, read the memory.

        Args:
            position: plan position of the node.
            tensor: an input of the node.
            root_of: mapping from a tensor that shares memory to the tensor (root) that used it
                first.
        """
        root = root_of.get(tensor, tensor)
        if self.of_memory[root] > position:
            return True
        for other in self._reads[position]:  # a loop: it takes half as long as any() does
            if other != tensor and root_of.get(other, other) == root:
                return True
        return False
