"""The user's choice for delegates that fail during invoke, and the record of failures."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol, get_args
from weakref import WeakSet

from delegraph.delegation.delegate import Delegate
from delegraph.delegation.incident import Incident
from delegraph.errors import ArgumentError
from delegraph.runtime.isolation.isolation import Isolation

if TYPE_CHECKING:
    from delegraph.plugins.specs import Isolate

logger = logging.getLogger(__name__)

OnFailure = Literal["raise", "fallback", "shadow"]

_ALMOST = 1 - 1e-9  # a share that adds up to 1 is a little less at times


@dataclass(frozen=True, slots=True)
class FailurePolicy:
    """What an interpreter does when a delegate fails.

    Attributes:
        on_failure: None is ``"fallback"`` for delegates in processes of their own, ``"raise"`` for
            others. ``"raise"`` lets the error out. ``"fallback"`` computes the partition's original
            nodes by Delegraph's kernels and records an incident. ``"shadow"`` does that, and
            recomputes a share of all invokes besides: a delegate that differs by more than its
            tolerance is quarantined: its nodes stay with Delegraph's kernels from then on.
        validate: check the results of delegates for NaN, wrong shapes and integers out of range.
        shadow_share: share of invokes that ``"shadow"`` recomputes, 0 < share <= 1; the first
            invoke is always among them.
        isolate: whether delegates run in processes of their own, as for ``load_delegate``.
        timeout: seconds that an invoke of an isolated delegate may take.
        is_default: whether the policy is for the default delegate, whose first failure removes it
            and gives a warning.

    Raises:
        ArgumentError: an unknown word, a share out of range, or no positive number of seconds.
    """

    on_failure: OnFailure | None = None
    validate: bool = False
    shadow_share: float = 0.1
    isolate: Isolate | None = None
    timeout: float | None = None
    is_default: bool = False

    def __post_init__(self) -> None:
        if self.on_failure not in (None, *get_args(OnFailure)):
            known = ", ".join(map(repr, get_args(OnFailure)))
            raise ArgumentError(f"on_failure is {self.on_failure!r}, expected one of {known}")
        if not 0 < self.shadow_share <= 1:
            raise ArgumentError(f"shadow_share is {self.shadow_share}, expected 0 < share <= 1")
        _ = self.isolation  # which checks its words

    @property
    def isolation(self) -> Isolation:
        """Which delegates get a process of their own."""
        return Isolation(self.isolate, self.timeout)

    def of(self, delegate: object, *, is_default: bool = False) -> FailurePolicy:
        """Return the policy for *delegate*, with a definite ``on_failure``.

        Args:
            delegate: the delegate.
            is_default: whether the delegate is applied by default; its errors are never raised
                then.
        """
        if is_default:
            kept: OnFailure = "shadow" if self.on_failure == "shadow" else "fallback"
            return replace(self, on_failure=kept, is_default=True)
        if self.on_failure is not None:
            return self
        is_isolated = isinstance(delegate, Delegate) and delegate.is_isolated
        return replace(self, on_failure="fallback" if is_isolated else "raise")

    @property
    def needs_guard(self) -> bool:
        """Whether delegate nodes need a guard; the policy must have a definite ``on_failure``."""
        return self.validate or self.on_failure != "raise"


_MOST_INCIDENTS = 1000


class Incidents:
    """Incidents of one interpreter; equal ones are counted, and logged only once.

    Error texts may differ at every invoke, so at most a thousand different ones are kept.
    """

    def __init__(self) -> None:
        self._found: dict[Incident, Incident] = {}

    def record(
        self,
        incident: Incident,
        heir: str = "Delegraph's kernels",
        level: int = logging.WARNING,
    ) -> None:
        """Add an incident with a count of 1; the log names *heir*, which computes instead."""
        known = self._found.get(incident)
        if known is None:
            if len(self._found) < _MOST_INCIDENTS:
                logger.log(level, "%s; %s take over", incident, heir)
                self._found[incident] = incident
        else:
            self._found[incident] = replace(known, count=known.count + 1)

    def all(self) -> tuple[Incident, ...]:
        """Return the incidents in the order of their first occurrence."""
        return tuple(self._found.values())


class Retires(Protocol):
    """Runs a delegate's node until it is told to run the original nodes instead."""

    delegate: object

    def retire(self) -> None:
        """Let Delegraph's kernels run the node from now on."""


class Supervision:
    """Knowledge of one interpreter about its delegates, kept when nodes are prepared again.

    Attributes:
        has_warned: whether the warning of a delegate that is applied by default has been given.
    """

    def __init__(self) -> None:
        self.has_warned = False
        self._quarantined: list[object] = []
        self._credit: dict[tuple[int, int], float] = {}
        self._running: WeakSet[Retires] = WeakSet()

    @property
    def has_quarantined(self) -> bool:
        """Whether any delegate has been quarantined."""
        return bool(self._quarantined)

    def watch(self, running: Retires) -> None:
        """Call ``running.retire()`` once the delegate of *running* is quarantined."""
        self._running.add(running)

    def quarantine(self, delegate: object) -> None:
        """Stop running *delegate*: its nodes are computed by Delegraph's kernels from now on."""
        self._quarantined.append(delegate)
        for running in list(self._running):
            if running.delegate is delegate:
                running.retire()

    def is_quarantined(self, delegate: object) -> bool:
        """Return whether a delegate has been quarantined."""
        return any(delegate is known for known in self._quarantined)

    def is_due(self, subgraph: int, node_index: int, share: float) -> bool:
        """Return whether this run of a node is among the *share* to recompute; the first is.

        >>> supervision = Supervision()
        >>> [supervision.is_due(0, 7, 0.5) for _ in range(5)]
        [True, False, True, False, True]
        """
        key = subgraph, node_index
        credit = self._credit.get(key, 1.0 - share) + share
        is_due = credit >= _ALMOST
        self._credit[key] = credit - 1.0 if is_due else credit
        return is_due
