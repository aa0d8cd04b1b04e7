"""Profile of Python delegates in an official interpreter, which has no profile of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from delegraph.graph.model import OperatorSpec, SubgraphSpec
from delegraph.runtime.execution.profile import Profile


class ProfiledHost(Protocol):
    """Interface of a delegate that profiling uses."""

    profile: Profile | None
    """Profile that records the delegate's nodes; None if no profile is recorded."""

    @property
    def delegate_name(self) -> str:
        """Name of the delegate, for the profile."""


class ProfiledContext:
    """The profiling part of a delegate's context; see ``DelegateContext``.

    Attributes:
        spec: the subgraph.
        operators: mapping from a node index of the runtime to the model's operator.
    """

    spec: SubgraphSpec
    operators: Mapping[int, OperatorSpec]
    _host: ProfiledHost

    @property
    def is_profiling(self) -> bool:
        """Whether ``LiteRtInterpreter.profile`` is recording."""
        return self._host.profile is not None

    def record_event(
        self, name: str, node_index: int, start: int, duration: int, fused: Sequence[int] = ()
    ) -> None:
        """Add a run of operator *name* to the profile, if one is being taken.

        Args:
            name: name of the operator.
            node_index: index of the model's node that was computed.
            start: ``time.perf_counter_ns()`` at the beginning of the run.
            duration: nanoseconds of the run.
            fused: indices of the model's other nodes that were computed in the same run.
        """
        profile = self._host.profile
        if profile is not None:
            first, *others = (self.operators[node].index for node in (node_index, *fused))
            by, subgraph = self._host.delegate_name, self.spec.index
            profile.add(name, subgraph, first, start, duration, by, tuple(others))
