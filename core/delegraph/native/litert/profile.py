"""The profile that delegates in an official interpreter add to; LiteRT has none for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from delegraph.graph.model import OperatorSpec, SubgraphSpec
from delegraph.runtime.execution.profile import Profile


class ProfiledHost(Protocol):
    """A delegate, as far as profiles go."""

    profile: Profile | None
    """Where its nodes are recorded; None while no profile is taken."""

    @property
    def delegate_name(self) -> str:
        """The delegate's name."""


class ProfiledContext:
    """What a delegate's context has of profiles; see ``DelegateContext``.

    Attributes:
        spec: the subgraph.
        operators: the model's operator of each node of the runtime, by node index.
    """

    spec: SubgraphSpec
    operators: Mapping[int, OperatorSpec]
    _host: ProfiledHost

    @property
    def is_profiling(self) -> bool:
        """Whether ``LiteRtInterpreter.profile`` records."""
        return self._host.profile is not None

    def record_event(
        self, name: str, node_index: int, start: int, duration: int, fused: Sequence[int] = ()
    ) -> None:
        """Add an operator to the profile of ``LiteRtInterpreter``, if one is being taken."""
        profile = self._host.profile
        if profile is not None:
            first, *others = (self.operators[node].index for node in (node_index, *fused))
            by, subgraph = self._host.delegate_name, self.spec.index
            profile.add(name, subgraph, first, start, duration, by, tuple(others))
