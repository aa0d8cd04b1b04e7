"""What the subgraphs of one interpreter share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from delegraph.delegation.bound_rules import BoundRules
from delegraph.delegation.control_edges import parse_control_edges
from delegraph.delegation.delegate import Delegate, PartitionPolicy
from delegraph.delegation.placement import Placement, is_never_delegated
from delegraph.delegation.rules import PlacementRules, require_full
from delegraph.graph.model import Model
from delegraph.operators.custom_op import AnyCustomOp
from delegraph.operators.registration import Numerics
from delegraph.runtime.delegates.failure_policy import RAISE, FailurePolicy, Incidents
from delegraph.runtime.delegates.fallback import Watch
from delegraph.runtime.delegates.measured_partitions import losing_nodes
from delegraph.runtime.delegates.placement import placement_of
from delegraph.runtime.delegates.plan_state import Barred, Snapshot
from delegraph.runtime.kept_data import KeptData
from delegraph.runtime.memory_limit import MemoryLimit
from delegraph.runtime.op_resolver import OpResolver
from delegraph.runtime.profile import Profile
from delegraph.runtime.subgraph import Subgraph
from delegraph.schema.collector import collector_paused

Requirement = Literal["full"]
"""What a placement must be: ``"full"``, no node without a delegate."""


@dataclass(frozen=True, slots=True)
class Options:
    """How an interpreter runs its model.

    Attributes:
        recommended_num_threads: threads that the user grants; -1 when that is left open.
        numerics: which official kernels to round like.
        preserve_all_tensors: keep every intermediate tensor; delegates then get one node at a time.
        disable_delegate_clustering: partition in plan order instead of pulling nodes together.
        disable_delegate_node_fusion: one node in each partition.
        force_delegate_node_profiling: profile delegate nodes even if they profile their own nodes.
        policy: what to do about delegates that fail.
        partition_policy: how the partitions of every delegate are chosen.
        require: ``"full"`` when no node may stay behind.
        memory_limit: bytes that a subgraph's tensors may take; None for what suits the file.
    """

    recommended_num_threads: int
    numerics: Numerics
    preserve_all_tensors: bool
    disable_delegate_clustering: bool
    disable_delegate_node_fusion: bool
    memory_limit: int | None
    force_delegate_node_profiling: bool = False
    policy: FailurePolicy = RAISE
    partition_policy: PartitionPolicy = "largest"
    require: Requirement | None = None

    @property
    def num_threads(self) -> int:
        """Threads that kernels use; >= 1."""
        return max(self.recommended_num_threads, 1)


class Session:
    """A loaded model with its options, resources and running subgraphs.

    Attributes:
        model: what the file declares.
        options: how it is run.
        resolver: where its operators' implementations come from.
        memory_limit: bytes that each subgraph may take.
        resources: variables and tables, shared by the subgraphs.
        control_edges: the model's own, by subgraph; None when it has none.
        rules: the nodes that the user's rules keep from delegates, or pin to one.
        delegates: those applied, in order, as far as none was refused.
        incidents: what delegates did wrong while Delegraph went on.
        watch: which delegates are quarantined, and when the next is to be recomputed.
        profile: where the nodes that run are recorded; None while nobody asks.
        subgraphs: in the model's order.
    """

    def __init__(
        self,
        model: Model,
        options: Options,
        custom_ops: Mapping[str, AnyCustomOp] | None = None,
        rules: PlacementRules | None = None,
    ) -> None:
        self.model = model
        self.options = options
        self.resolver = OpResolver(custom_ops)
        self.memory_limit = MemoryLimit.of(options.memory_limit, len(model.content))
        self.resources: dict[Any, Any] = {}
        self.control_edges = parse_control_edges(model.metadata, len(model.subgraphs))
        self.rules = BoundRules(rules, model) if rules else None
        self.delegates: list[Delegate] = []
        self.incidents = Incidents()
        self.watch = Watch()
        self.profile: Profile | None = None
        self.subgraphs = [Subgraph(spec, self) for spec in model.subgraphs]

    def allocate(self) -> None:
        """Allocate the primary subgraph; the others are allocated when they are called."""
        self.subgraphs[0].allocate()

    def close(self) -> None:
        """Let go of memory and delegates at once, without waiting for the garbage collector."""
        for subgraph in self.subgraphs:
            subgraph.close()
        self.subgraphs.clear()
        self.delegates.clear()
        self.resources.clear()

    def unresolved_custom_ops(self) -> set[str]:
        """Return the names of the custom operators that neither kernel nor delegate provides."""
        return {
            registration.name
            for subgraph in self.subgraphs
            for _, registration in subgraph.plan.steps()
            if registration.is_unresolved
        }

    def apply(self, delegate: Delegate) -> None:
        """Apply a delegate to every subgraph that may be delegated, or to none.

        A subgraph that is allocated stays so, with the data of its inputs and variables.

        Raises:
            DelegateError: it failed on one of them; all are as they were before.
        """
        kept = [s.keep_data() for s in self.subgraphs if s.is_allocated]
        before = [(subgraph, subgraph.plan.snapshot()) for subgraph in self.subgraphs]
        try:
            with collector_paused():
                self._apply(delegate, {})
            if "measured" in (self.options.partition_policy, delegate.partition_policy):
                losing = losing_nodes(self, delegate)
                if any(losing.values()):
                    _restore(before)
                    self._apply(delegate, losing)
            _allocate_again(kept)
            self.delegates.append(delegate)
        except BaseException:
            _restore(before)
            _allocate_again(kept)
            raise

    def _apply(self, delegate: Delegate, barred: Mapping[int, Barred]) -> None:
        for subgraph in self.subgraphs:
            if not is_never_delegated(subgraph.spec.name) and not self._is_absorbed(subgraph):
                subgraph.plan.apply(delegate, barred.get(subgraph.spec.index, {}))

    def _is_absorbed(self, subgraph: Subgraph) -> bool:
        """Whether a delegate node of another subgraph computes this one."""
        return any(subgraph.spec.index in other.plan.absorbed for other in self.subgraphs)

    def remove_all_delegates(self) -> None:
        """Take every delegate off; what is allocated stays so, as in :meth:`apply`."""
        kept = [s.keep_data() for s in self.subgraphs if s.is_allocated]
        for subgraph in self.subgraphs:
            subgraph.plan.remove_all()
        self.delegates.clear()
        _allocate_again(kept)

    @contextmanager
    def profiling(self) -> Iterator[Profile]:
        """Record the nodes that run while the context lasts."""
        before, profile = self.profile, Profile()
        self.profile = profile
        try:
            yield profile
        finally:
            self.profile = before

    def barred(self, subgraph: int, delegate: str) -> Barred:
        """Return the nodes of a subgraph that the user's rules keep from a delegate."""
        return {} if self.rules is None else self.rules.barred(subgraph, delegate)

    def placement(self) -> Placement:
        """Return which delegate has each node."""
        return placement_of(self.subgraphs, self.delegates)

    def check_placement(self) -> None:
        """Let pass a placement that the rules' pins and ``require`` agree with.

        Raises:
            PlacementError: nodes are elsewhere.
        """
        must_be_full = self.options.require == "full"
        if self.rules is None and not must_be_full:
            return
        placement = self.placement()
        if self.rules is not None:
            self.rules.check_pins(placement)
        if must_be_full:
            require_full(placement)


def _restore(before: Iterable[tuple[Subgraph, Snapshot]]) -> None:
    for subgraph, snapshot in before:
        subgraph.plan.restore(snapshot)


def _allocate_again(kept: Iterable[KeptData]) -> None:
    for data in kept:
        data.subgraph.allocate()
        data.put_back()
