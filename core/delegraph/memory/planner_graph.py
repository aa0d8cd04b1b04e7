"""What the arena planner sees of a subgraph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class TensorKind(Enum):
    """Who provides a tensor's memory."""

    ARENA_RW = "shared arena"
    ARENA_RW_PERSISTENT = "persistent arena"
    OTHER = "not the planner"


@dataclass(slots=True)
class PlanNode:
    """One node of the plan, as far as memory goes.

    Attributes:
        inputs: tensor indices; -1 for an absent one.
        outputs: tensor indices; -1 for an absent one.
        temporaries: tensors that only this node uses. May be set until memory is assigned.
        inplace: which inputs may share memory with output 0: bits 4, 8 and 16 for inputs 0, 1 and
            2, and bit 1 if the node leaves the data as it is.
        held: tensors that nodes before this one may still read while it runs.
    """

    inputs: Sequence[int]
    outputs: Sequence[int]
    temporaries: Sequence[int] = ()
    inplace: int = 0
    held: Sequence[int] = ()


class PlannerGraph(Protocol):
    """What the planner asks of a subgraph, each time anew: shapes and temporaries change."""

    @property
    def nodes(self) -> Sequence[PlanNode]:
        """The nodes in execution order."""

    @property
    def inputs(self) -> Sequence[int]:
        """Tensor indices of the graph's inputs; -1 for an absent one."""

    @property
    def outputs(self) -> Sequence[int]:
        """Tensor indices of the graph's outputs; -1 for an absent one."""

    @property
    def variables(self) -> Sequence[int]:
        """Tensor indices of the graph's variables."""

    @property
    def num_tensors(self) -> int:
        """Number of tensors; may grow, never shrinks."""

    def tensor_bytes(self, index: int) -> int:
        """Return the bytes that a tensor needs now."""

    def tensor_kind(self, index: int) -> TensorKind:
        """Return who provides its memory now."""
