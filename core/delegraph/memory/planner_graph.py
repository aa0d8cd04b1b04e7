"""The interface through which the arena planner reads a subgraph, and its reads in order."""

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
        temporaries: indices of tensors that only this node uses; may be set until memory is
            assigned.
        inplace: which inputs may share memory with output 0: bits 4, 8 and 16 for inputs 0, 1 and
            2, and bit 1 if the node leaves the data unchanged.
        held: indices of tensors that earlier, asynchronous nodes may still read while this node
            runs.
    """

    inputs: Sequence[int]
    outputs: Sequence[int]
    temporaries: Sequence[int] = ()
    inplace: int = 0
    held: Sequence[int] = ()


class PlannerGraph(Protocol):
    """A subgraph as the planner reads it; it is read at each planning, since shapes change."""

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
        """Return the number of bytes that tensor *index* needs now."""

    def tensor_kind(self, index: int) -> TensorKind:
        """Return who owns the memory of tensor *index* now: one of the two arenas, or others."""


class LastReads:
    """Tracks the last read of shared memory, to decide whether a node may overwrite an input.

    Args:
        reads: tensors that are read while each node of the plan runs, in execution order.
        num_tensors: number of tensors of the graph.
        root: mapping from a tensor that shares memory to the tensor (root) that used it first; it
            may change between calls.

    Attributes:
        counts: number of reads of each tensor, without reads of tensors that share its memory.
    """

    def __init__(
        self, reads: Sequence[Sequence[int]], num_tensors: int, root: Mapping[int, int]
    ) -> None:
        self._reads = reads
        self._root = root
        lengths = np.fromiter(map(len, reads), np.intp, len(reads))
        tensors = np.fromiter(chain.from_iterable(reads), np.intp, int(lengths.sum()))
        own = np.full(num_tensors, -1)  # last read of each tensor
        np.maximum.at(own, tensors, np.repeat(np.arange(len(reads)), lengths))
        self._own: list[int] = own.tolist()
        self._last = list(self._own)
        self.counts: list[int] = np.bincount(tensors, minlength=num_tensors).tolist()

    def share(self, root: int, tensor: int) -> None:
        """Record that *tensor* uses the memory of *root* from now on."""
        last = self._last
        if last[tensor] > last[root]:
            last[root] = last[tensor]

    def forbid(self, position: int, tensor: int) -> bool:
        """Whether the node at *position* must not overwrite the memory of *tensor*.

        It must not if later nodes, or other inputs of this node, read the memory.
        """
        root_of = self._root.get
        root = root_of(tensor, tensor)
        if self._last[root] > position:
            return True
        for other in self._reads[position]:  # a loop: it takes half as long as any() does
            if other != tensor and root_of(other, other) == root:
                return True
        return False

    def of_memory(self) -> Sequence[int]:
        """Return the plan position at which each tensor's memory is read last.

        It is -1 for memory that is never read, and for tensors that share another tensor's.
        """
        last = list(self._own)
        for tensor, root in self._root.items():
            last[root] = max(last[root], last[tensor])
            last[tensor] = -1
        return last
