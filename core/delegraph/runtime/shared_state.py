"""What the subgraphs of one interpreter share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from delegraph.delegation.control_edges import parse_control_edges
from delegraph.graph.calls import require_depth
from delegraph.operators.memory_limit import MemoryLimit
from delegraph.runtime.arguments import folder_of
from delegraph.runtime.calls import Calls
from delegraph.runtime.cancellation import Cancellation, NestedCancellation
from delegraph.runtime.delegates.failure_policy import Incidents, Supervision
from delegraph.runtime.op_resolver import OpResolver

if TYPE_CHECKING:
    from delegraph.delegation.bound_rules import BoundRules
    from delegraph.delegation.delegate import DelegateContext
    from delegraph.delegation.rules import PlacementRules
    from delegraph.graph.model import Model
    from delegraph.operators.custom_op import AnyCustomOp
    from delegraph.operators.registration import CallableSubgraph
    from delegraph.runtime.delegates.plan_state import Barred
    from delegraph.runtime.options import Options
    from delegraph.runtime.profile import Profile


class SharedState:
    """A loaded model, its options, and what its subgraphs have in common while they run.

    Attributes:
        model: what the file declares.
        options: how it is run.
        resolver: where its operators' implementations come from.
        memory_limit: bytes that each subgraph may take.
        resources: variables and tables.
        cache_dir: where delegates keep what they compile; None for the user's own folder.
        shared: objects that this interpreter shares with others, kept for as long as it lives.
        control_edges: the model's own, by subgraph; None when it has none.
        rules: the nodes that the user's rules keep from delegates, or pin to one.
        incidents: what delegates did wrong while Delegraph went on.
        supervision: which delegates are quarantined, and which runs are recomputed.
        cancellation: whether the call that runs is asked to stop.
        calls: lets one call run at a time.
        profile: where the nodes that run are recorded; None while nobody asks.
        callees: each subgraph as control flow calls it; empty until all of them are made.
        contexts: each subgraph as kernels and delegates see it; the same.
    """

    def __init__(
        self,
        model: Model,
        options: Options,
        custom_ops: Mapping[str, AnyCustomOp] | None = None,
        rules: PlacementRules | None = None,
    ) -> None:
        require_depth(model, options.depth_limit)
        self.model = model
        self.options = options
        self.resolver = OpResolver(custom_ops)
        self.memory_limit = MemoryLimit.of(options.memory_limit, len(model.content))
        self.resources: dict[Any, Any] = {}
        self.shared: dict[Any, Any] = {}
        self.cache_dir = folder_of(options.cache_dir)
        self.control_edges = parse_control_edges(model.metadata, len(model.subgraphs))
        self.rules = _bound(rules, model) if rules else None
        self.incidents = Incidents()
        self.supervision = Supervision()
        self.cancellation = (
            Cancellation(options.time_limit)
            if options.cancellation is None
            else NestedCancellation(options.cancellation)
        )
        self.calls = Calls(self.cancellation)
        self.profile: Profile | None = None
        self.callees: list[CallableSubgraph] = []
        self.contexts: list[DelegateContext] = []

    def barred(self, subgraph: int, delegate: str) -> Barred:
        """Return the nodes of a subgraph that the user's rules keep from a delegate."""
        return {} if self.rules is None else self.rules.barred(subgraph, delegate)

    def pinned(self, subgraph: int, delegate: str) -> frozenset[int]:
        """Return the nodes of a subgraph that the user's rules pin to a delegate."""
        return frozenset() if self.rules is None else self.rules.pinned(subgraph, delegate)


def _bound(rules: PlacementRules, model: Model) -> BoundRules:
    from delegraph.delegation.bound_rules import BoundRules  # here: few interpreters have rules

    return BoundRules(rules, model)
