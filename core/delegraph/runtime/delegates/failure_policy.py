"""What users choose for a delegate that fails while invoking, and the record of each failure."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from delegraph.delegation.delegate import Delegate
from delegraph.errors import ArgumentError, DelegatePhase

logger = logging.getLogger(__name__)

OnFailure = Literal["raise", "fallback", "shadow"]

_ALMOST = 1 - 1e-9  # a share that adds up to 1 is a little less at times


@dataclass(frozen=True, slots=True)
class FailurePolicy:
    """What an interpreter does about delegates that fail.

    Attributes:
        on_failure: None is ``"fallback"`` for delegates in processes of their own, ``"raise"`` for
            others. ``"raise"`` lets the error out. ``"fallback"`` computes the partition's original
            nodes by Delegraph's kernels and records an incident. ``"shadow"`` does that, and
            recomputes a share of all invokes besides: a delegate that differs by more than its
            tolerance is quarantined: its nodes stay with Delegraph's kernels from then on.
        validate: check the results of delegates for NaN, wrong shapes and integers out of range.
        shadow_share: share of invokes that ``"shadow"`` recomputes, 0 < share <= 1; the first
            invoke is always among them.

    Raises:
        ArgumentError: an unknown ``on_failure``, or a share out of range.
    """

    on_failure: OnFailure | None = None
    validate: bool = False
    shadow_share: float = 0.1

    def __post_init__(self) -> None:
        if self.on_failure not in (None, *get_args(OnFailure)):
            known = ", ".join(map(repr, get_args(OnFailure)))
            raise ArgumentError(f"on_failure is {self.on_failure!r}, expected one of {known}")
        if not 0 < self.shadow_share <= 1:
            raise ArgumentError(f"shadow_share is {self.shadow_share}, expected 0 < share <= 1")

    def of(self, delegate: object) -> FailurePolicy:
        """Return what counts for *delegate*: the same, with ``on_failure`` decided."""
        if self.on_failure is not None:
            return self
        is_isolated = isinstance(delegate, Delegate) and delegate.is_isolated
        return replace(self, on_failure="fallback" if is_isolated else "raise")

    @property
    def needs_guard(self) -> bool:
        """Whether delegate nodes cannot simply be run; ``on_failure`` is decided."""
        return self.validate or self.on_failure != "raise"


@dataclass(frozen=True, slots=True)
class Incident:
    """Something a delegate did wrong while Delegraph went on.

    Attributes:
        delegate: its name.
        subgraph: index of the subgraph.
        node_index: the delegate's node; -1 when it got none.
        nodes: the model's nodes that it computes.
        phase: what it was doing.
        error: the error in words.
        count: how often it happened.
        is_quarantined: whether the delegate is not asked any more.
    """

    delegate: str
    subgraph: int
    node_index: int
    nodes: tuple[int, ...]
    phase: DelegatePhase
    error: str
    count: int = 1
    is_quarantined: bool = False

    def __str__(self) -> str:
        times = "" if self.count == 1 else f" ({self.count} times)"
        state = "; quarantined" if self.is_quarantined else ""
        return (
            f"delegate {self.delegate!r}, node {self.node_index} of subgraph {self.subgraph}, "
            f"{self.phase}: {self.error}{times}{state}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the incident as a JSON-ready dictionary."""
        from delegraph.delegation.placement import record_json

        return record_json(self)


_MOST_INCIDENTS = 1000


class Incidents:
    """The incidents of one interpreter; equal ones are counted, and logged the first time.

    Error texts may differ at every invoke, so at most a thousand different ones are kept.
    """

    def __init__(self) -> None:
        self._found: dict[Incident, Incident] = {}

    def record(self, incident: Incident, heir: str = "Delegraph's kernels") -> None:
        """Add an incident with a count of 1; the log names who computes instead."""
        known = self._found.get(incident)
        if known is None:
            if len(self._found) < _MOST_INCIDENTS:
                logger.warning("%s; %s take over", incident, heir)
                self._found[incident] = incident
        else:
            self._found[incident] = replace(known, count=known.count + 1)

    def all(self) -> tuple[Incident, ...]:
        """Return them in the order of their first occurrence."""
        return tuple(self._found.values())


class Supervision:
    """What one interpreter has learnt about its delegates; outlasts every preparation."""

    def __init__(self) -> None:
        self._quarantined: list[object] = []
        self._credit: dict[tuple[int, int], float] = {}

    def quarantine(self, delegate: object) -> None:
        """Let nothing of *delegate* run any more."""
        self._quarantined.append(delegate)

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
