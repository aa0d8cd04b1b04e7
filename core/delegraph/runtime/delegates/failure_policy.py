"""The user's choice for delegates that fail during invoke."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

from delegraph.errors import ArgumentError

if TYPE_CHECKING:
    from delegraph.plugins.specs import Isolate
    from delegraph.runtime.isolation.isolation import Isolation

OnFailure = Literal["raise", "fallback", "shadow"]


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
        isolate: as ``load_delegate`` has it, for all delegates.
        timeout: seconds that an invoke of an isolated delegate may take.
        is_default: whether it is for a delegate that is applied by default: its first failure takes
            it off, and is a warning.

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
        if self.isolate is not None or self.timeout is not None:
            _ = self.isolation  # which checks its words

    @property
    def isolation(self) -> Isolation:
        """Which delegates get a process of their own."""
        from delegraph.runtime.isolation.isolation import Isolation  # here: only delegates do

        return Isolation(self.isolate, self.timeout)

    def of(self, delegate: object, *, is_default: bool = False) -> FailurePolicy:
        """Return the policy for *delegate*, with a definite ``on_failure``.

        Args:
            delegate: the delegate.
            is_default: whether it is applied by default, so that it never raises its errors.
        """
        if is_default:
            kept: OnFailure = "shadow" if self.on_failure == "shadow" else "fallback"
            return replace(self, on_failure=kept, is_default=True)
        if self.on_failure is not None:
            return self
        from delegraph.delegation.delegate import Delegate  # here: many models have none

        is_isolated = isinstance(delegate, Delegate) and delegate.is_isolated
        return replace(self, on_failure="fallback" if is_isolated else "raise")

    @property
    def needs_guard(self) -> bool:
        """Whether delegate nodes cannot simply be run; ``on_failure`` is decided."""
        return self.validate or self.on_failure != "raise"
