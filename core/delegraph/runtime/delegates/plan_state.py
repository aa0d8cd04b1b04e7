"""What is known of delegates that are applied to a subgraph, and snapshots to go back to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from delegraph.delegation.rejections import Rejection
from delegraph.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from delegraph.delegation.delegate import Delegate
    from delegraph.operators.registration import Registration


Barred = Mapping[int, Rejection]
"""Mapping from nodes that a delegate may not have to the reasons."""


@dataclass(frozen=True, slots=True)
class AppliedDelegate:
    """A delegate that is applied to a subgraph.

    Attributes:
        delegate: the delegate.
        rejections: reasons for rejected nodes, by node index.
        lost: nodes that it lost because it was measured to be slower; part of ``rejections``.
    """

    delegate: Delegate
    rejections: Barred
    lost: Barred


@dataclass(slots=True)
class Application:
    """A delegate that is being applied to a subgraph.

    Attributes:
        delegate: the delegate.
        barred: mapping from nodes that the delegate may not have to the reasons.
        wrapped: function that adds the runtime's part to a kernel's registration.
        may_claim: whether the delegate may replace nodes, which it may only while its ``prepare``
            runs.
    """

    delegate: Delegate
    barred: Barred
    wrapped: Callable[[Registration], Registration]
    may_claim: bool = False


@dataclass(frozen=True, slots=True)
class PlanSnapshot:
    """All that applying a delegate changes about a plan."""

    num_nodes: int
    execution_plan: list[int]
    applied: list[AppliedDelegate]
    undone: list[AppliedDelegate]
    node_inputs: list[tuple[int, ...]]
    owner: dict[int, int]
    absorbed: frozenset[int]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that applying a delegate changes about a subgraph."""

    plan: PlanSnapshot
    num_tensors: int
    tensor_owners: list[object | None]
    tensor_shapes: list[tuple[int, ...]]
