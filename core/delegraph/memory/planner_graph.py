"""The interface through which the arena planner reads a subgraph."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

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
        """Return the present owner of the memory of tensor *index*."""
