"""Profile of Python delegates in an official interpreter, which has none for delegates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from delegraph.graph.model import OperatorSpec, SubgraphSpec
from delegraph.runtime.execution.profile import Profile


class ProfiledHost(Protocol):
    """The part of a delegate that profiling uses."""

    profile: Profile | None
    """Where its nodes are recorded; None while no profile is taken."""

    @property
    def delegate_name(self) -> str:
        """Name of the delegate, for the profile."""


class ProfiledContext:
    """The profiling part of a delegate's context; see ``DelegateContext``.

    Attributes:
        spec: the subgraph.
        operators: the model's operator of each node of the runtime, by node index.
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
        """Add the run of an operator to the profile, if one is recorded."""
        profile = self._host.profile
        if profile is not None:
            first, *others = (self.operators[node].index for node in (node_index, *fused))
            by, subgraph = self._host.delegate_name, self.spec.index
            profile.add(name, subgraph, first, start, duration, by, tuple(others))
