"""What delegates have made of an execution plan, to be put back as it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from delegraph.delegation.delegate import Delegate
from delegraph.delegation.rejections import Rejection

Barred = Mapping[int, Rejection]
"""Model nodes that a delegate may not have, and why."""


@dataclass(frozen=True, slots=True)
class AppliedDelegate:
    """A delegate in force.

    Attributes:
        delegate: the delegate.
        rejections: why it left the nodes it left, by node index.
        lost: nodes that it had and lost by measurement; part of ``rejections``.
    """

    delegate: Delegate
    rejections: Barred
    lost: Barred


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that applying a delegate changes."""

    num_nodes: int
    num_tensors: int
    execution_plan: list[int]
    applied: list[AppliedDelegate]
    undone: list[AppliedDelegate]
    node_inputs: list[tuple[int, ...]]
    tensor_owners: list[object | None]
    tensor_shapes: list[tuple[int, ...]]
    owner: dict[int, int]
    absorbed: frozenset[int]
