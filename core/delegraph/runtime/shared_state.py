"""State that the subgraphs of one interpreter share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from delegraph.delegation.control_edges import parse_control_edges
from delegraph.graph.calls import require_depth
from delegraph.operators.memory_limit import MemoryLimit
from delegraph.runtime.arguments import folder_of
from delegraph.runtime.delegates.failure_policy import Incidents, Supervision
from delegraph.runtime.execution.calls import Calls
from delegraph.runtime.execution.cancellation import Cancellation, NestedCancellation
from delegraph.runtime.op_resolver import OpResolver

if TYPE_CHECKING:
    from delegraph.delegation.delegate import Delegate, DelegateContext
    from delegraph.delegation.matched_rules import MatchedRules
    from delegraph.delegation.rules import PlacementRules
    from delegraph.graph.model import Model
    from delegraph.operators.custom_op import AnyCustomOp
    from delegraph.operators.registration import CallableSubgraph
    from delegraph.operators.tensor import Tensor
    from delegraph.runtime.delegates.failure_memory import FailureMemory
    from delegraph.runtime.delegates.failure_policy import FailurePolicy
    from delegraph.runtime.delegates.plan_state import Barred
    from delegraph.runtime.execution.profile import Profile
    from delegraph.runtime.options import InterpreterOptions


class SharedState:
    """A loaded model, its options and the run-time state that its subgraphs share.

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
        by_default: the delegates that are applied though no argument or option names them.
        failure_memory: what those of the configuration failed at in earlier processes; None
            without such.
        cancellation: whether the call that runs is asked to stop.
        calls: lets one call run at a time.
        profile: where the nodes that run are recorded; None while no profile is taken.
        callees: each subgraph as control flow calls it; empty until all of them are made.
        contexts: each subgraph as kernels and delegates see it; the same.
        has_other_constants: whether a constant has got another value than the file gives it.
    """

    def __init__(
        self,
        model: Model,
        options: InterpreterOptions,
        custom_ops: Mapping[str, AnyCustomOp] | None = None,
        rules: PlacementRules | None = None,
    ) -> None:
        require_depth(model, options.limits.depth)
        self.model = model
        self.options = options
        self.resolver = OpResolver(custom_ops)
        self.memory_limit = MemoryLimit.of(options.limits.memory, len(model.content))
        self.resources: dict[Any, Any] = {}
        self.shared: dict[Any, Any] = {}
        self.cache_dir = folder_of(options.cache_dir)
        self.control_edges = parse_control_edges(model.metadata, len(model.subgraphs))
        self.rules = _bound(rules, model) if rules else None
        self.incidents = Incidents()
        self.supervision = Supervision()
        self.by_default: Sequence[Delegate] = ()
        self.failure_memory: FailureMemory | None = None
        self.cancellation = (
            Cancellation(options.limits.time)
            if options.limits.cancellation is None
            else NestedCancellation(options.limits.cancellation)
        )
        self.calls = Calls(self.cancellation)
        self.profile: Profile | None = None
        self.callees: list[CallableSubgraph] = []
        self.contexts: list[DelegateContext] = []
        self.has_other_constants = False
        self._model_digest = ""

    @property
    def model_digest(self) -> str | None:
        """SHA-256 of the model file in hexadecimal digits; None where constants differ from it."""
        if self.has_other_constants:
            return None
        if not self._model_digest:
            from delegraph.delegation.content_digest import content_digest  # here: few ask

            self._model_digest = content_digest(self.model.content, self.cache_dir)
        return self._model_digest

    @contextmanager
    def profiling(self, *, whole_partitions: bool = False) -> Iterator[Profile]:
        """Record the nodes that run while the context lasts; see ``Profile``."""
        from delegraph.runtime.execution.profile import Profile

        before, profile = self.profile, Profile(whole_partitions=whole_partitions)
        self._take(profile)
        try:
            yield profile
        finally:
            self._take(before)

    def _take(self, profile: Profile | None) -> None:
        self.profile = profile
        for context in self.contexts:
            context.is_profiling = profile is not None  # type: ignore[misc]  # each is this runtime's

    @property
    def inputs(self) -> list[Tensor]:
        """The inputs of the first subgraph."""
        first = self.callees[0]
        return [first.tensors[index] for index in first.inputs if index >= 0]

    def is_by_default(self, delegate: object) -> bool:
        """Return whether a delegate is applied by default."""
        return any(delegate is known for known in self.by_default)

    def has_failed_by_default(self, delegate: object) -> bool:
        """Return whether a delegate is a default delegate that failed in this interpreter."""
        return self.is_by_default(delegate) and self.supervision.is_quarantined(delegate)

    def policy_of(self, delegate: object) -> FailurePolicy:
        """Return the failure policy of a delegate."""
        return self.options.failures.of(delegate, is_default=self.is_by_default(delegate))

    def barred(self, subgraph: int, delegate: str) -> Barred:
        """Return the nodes of a subgraph that the user's rules keep from a delegate."""
        return {} if self.rules is None else self.rules.barred(subgraph, delegate)

    def pinned(self, subgraph: int, delegate: str) -> frozenset[int]:
        """Return the nodes of a subgraph that the user's rules pin to a delegate."""
        return frozenset() if self.rules is None else self.rules.pinned(subgraph, delegate)


def _bound(rules: PlacementRules, model: Model) -> MatchedRules:
    from delegraph.delegation.matched_rules import MatchedRules  # here: few interpreters have rules

    return MatchedRules(rules, model)
