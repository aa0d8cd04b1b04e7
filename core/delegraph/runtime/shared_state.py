"""State that the subgraphs of one interpreter share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from delegraph.graph.model import CONTROL_EDGES
from delegraph.graph.model_files import is_unchanged
from delegraph.operators.memory_limit import MemoryLimit
from delegraph.runtime.arguments import folder_of
from delegraph.runtime.execution.calls import Calls, Cancellation, NestedCancellation
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
    from delegraph.runtime.delegates.incidents import Incidents, Supervision
    from delegraph.runtime.delegates.plan_state import Barred
    from delegraph.runtime.execution.profile import Profile
    from delegraph.runtime.options import FailurePolicy, InterpreterOptions


class SharedState:
    """A loaded model, its options and the run-time state that its subgraphs share.

    Attributes:
        model: content of the model file.
        options: options of the interpreter.
        resolver: finds the implementations of the model's operators.
        memory_limit: maximal number of bytes of each subgraph's tensors.
        resources: resource variables and hash tables.
        cache_dir: folder for partitions that delegates compile; None for the user's own folder.
        shared: objects that this interpreter shares with others, kept alive while it lives.
        control_edges: control edges in the model file, by subgraph; None if there are none.
        rules: the user's placement rules, with the nodes that match them.
        by_default: the applied delegates that no argument or option names.
        failure_memory: failures of configured delegates in earlier processes; None if no delegate
            is configured.
        cancellation: stop request for the running call.
        calls: lock that lets one call run at a time.
        profile: the profile that records running nodes; None while no profile is taken.
        callees: each subgraph as control flow calls it; empty until all subgraphs are created.
        contexts: context of each subgraph for kernels and delegates; empty until all subgraphs are
            created.
        has_other_constants: whether a constant has another value than in the file.
    """

    def __init__(
        self,
        model: Model,
        options: InterpreterOptions,
        custom_ops: Mapping[str, AnyCustomOp] | None = None,
        rules: PlacementRules | None = None,
    ) -> None:
        if len(model.subgraphs) > 1:
            from delegraph.graph.calls import require_depth  # lazy: most models have one subgraph

            require_depth(model, options.limits.depth)
        self.model = model
        self.options = options
        self.resolver = OpResolver(custom_ops)
        self.memory_limit = MemoryLimit.of(options.limits.memory, model.bytes)
        self.resources: dict[Any, Any] = {}
        self.shared: dict[Any, Any] = {}
        self.cache_dir = folder_of(options.cache_dir)
        self.control_edges = _control_edges(model)
        self.rules = _bound(rules, model) if rules else None
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
        """SHA-256 of the model in hexadecimal digits.

        It is None if a caller replaced a constant, or if a file was overwritten after it was read.
        """
        files = self.model.content, *self.model.external_buffers.files
        if self.has_other_constants or not all(map(is_unchanged, files)):
            return None
        if not self._model_digest:
            from delegraph.delegation.content_digest import model_digest  # lazy import: few ask

            self._model_digest = model_digest(self.model, self.cache_dir)
        return self._model_digest

    @cached_property
    def incidents(self) -> Incidents:
        """Failures of delegates that did not stop the interpreter."""
        from delegraph.runtime.delegates.incidents import Incidents  # lazy: only delegates do

        return Incidents()

    @cached_property
    def supervision(self) -> Supervision:
        """Record of the quarantined delegates and of the runs to recompute."""
        from delegraph.runtime.delegates.incidents import Supervision  # lazy import, too

        return Supervision()

    @contextmanager
    def profiling(self, *, whole_partitions: bool = False) -> Iterator[Profile]:
        """Context that yields a profile, which records the nodes that run within the block.

        With *whole_partitions*, a partition is recorded as a whole even if its delegate records
        each operator.
        """
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

    def forget_kept_arrays(self) -> None:
        """Remove the arrays that nodes keep between invokes."""
        if self.resources:
            from delegraph.operators.kept_array import forget_kept_arrays  # lazy: few keep any

            forget_kept_arrays(self.resources)

    def is_by_default(self, delegate: object) -> bool:
        """Whether a delegate is applied without being named by an argument or option."""
        return any(delegate is known for known in self.by_default)

    def has_failed_by_default(self, delegate: object) -> bool:
        """Whether a delegate is a default delegate that failed in this interpreter."""
        return self.is_by_default(delegate) and self.supervision.is_quarantined(delegate)

    def policy_of(self, delegate: object) -> FailurePolicy:
        """Return the failure policy of a delegate."""
        return self.options.failures.of(delegate, is_default=self.is_by_default(delegate))

    def barred(self, subgraph: int, delegate: str) -> Barred:
        """Return the nodes of a subgraph that the user's rules forbid to a delegate."""
        return {} if self.rules is None else self.rules.barred(subgraph, delegate)

    def pinned(self, subgraph: int, delegate: str) -> frozenset[int]:
        """Return the nodes of a subgraph that the user's rules pin to a delegate."""
        return frozenset() if self.rules is None else self.rules.pinned(subgraph, delegate)


def _control_edges(model: Model) -> list[list[tuple[int, int]]] | None:
    if CONTROL_EDGES not in model.metadata:
        return None
    from delegraph.delegation.control_edges import parse_control_edges  # lazy: few models have any

    return parse_control_edges(model.metadata, len(model.subgraphs))


def _bound(rules: PlacementRules, model: Model) -> MatchedRules:
    from delegraph.delegation.matched_rules import MatchedRules  # lazy: few interpreters have rules

    return MatchedRules(rules, model)
