"""Records of the delegates applied to a subgraph, and snapshots for restoring it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from delegraph.delegation.rejections import Rejection
from delegraph.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from delegraph.delegation.delegate import Delegate
    from delegraph.operators.registration import Registration


Barred = Mapping[int, Rejection]
"""Mapping from nodes that a delegate may not claim to the reasons."""


@dataclass(frozen=True, slots=True)
class AppliedDelegate:
    """A delegate that is applied to a subgraph.

    Attributes:
        delegate: the delegate.
        rejections: reasons for rejected nodes, by node index.
        lost: nodes taken from the delegate because it was measured to be slower; part of
            ``rejections``.
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
        wrapped: function that adds the runtime's own work to a kernel's registration.
        may_claim: whether the delegate may replace nodes, which it may only while its ``prepare``
            runs.
    """

    delegate: Delegate
    barred: Barred
    wrapped: Callable[[Registration], Registration]
    may_claim: bool = False


@dataclass(frozen=True, slots=True)
class PlanSnapshot:
    """The parts of a plan that applying a delegate changes, for restoring the plan.

    The fields are those of ``DelegatedPlan``, except for two.

    Attributes:
        num_nodes: number of nodes, so that later nodes can be removed.
        node_inputs: inputs of each node, which a delegate may change.
    """

    num_nodes: int
    execution_plan: list[int]
    applied: list[AppliedDelegate]
    undone: list[AppliedDelegate]
    node_inputs: list[tuple[int, ...]]
    owner: dict[int, int]
    absorbed: frozenset[int]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The parts of a subgraph that applying a delegate changes, for restoring the subgraph.

    Attributes:
        plan: snapshot of the plan.
        num_tensors: number of tensors, so that later tensors can be removed.
        tensor_owners: the delegate that owns each tensor, by index; None for tensors without one.
        tensor_shapes: shape of each tensor, by index.
    """

    plan: PlanSnapshot
    num_tensors: int
    tensor_owners: list[object | None]
    tensor_shapes: list[tuple[int, ...]]
