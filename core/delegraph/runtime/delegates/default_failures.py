"""Handles failures of default delegates: the model runs without the failed delegate.

One rule holds for all failures: the core's kernels repeat the work of the delegate. If these
kernels fail, too, their error is raised, as without the delegate, and the delegate is applied again
at the next allocation. If the kernels succeed, the delegate is at fault. Then an incident is
recorded, a warning is given, and the interpreter no longer uses the delegate.

``default_guard.py`` does the same for one partition during an invoke.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from delegraph.errors import CallCancelledError
from delegraph.runtime.delegates.default_incidents import blamed, incident_of, leave_out

if TYPE_CHECKING:
    from delegraph.delegation.delegate import Delegate
    from delegraph.runtime.delegates.plan_state import AppliedDelegate
    from delegraph.runtime.shared_state import SharedState
    from delegraph.runtime.subgraph import Subgraph


class Stack(Protocol):
    """Interface of a subgraph's ``DelegateStack``, with the members that this module uses."""

    @property
    def wanted(self) -> list[AppliedDelegate]:
        """The applied delegates, then the delegates that a resize has removed temporarily."""

    def start_again(self, delegates: Iterable[AppliedDelegate]) -> None:
        """Remove all delegates; :meth:`reapply` will apply *delegates*."""

    def reapply(self) -> None:
        """Apply the delegates that a resize has removed."""


# -- one that cannot be applied ------------------------------------------------------------------


def not_applied(first: Subgraph, delegate: Delegate, error: BaseException) -> bool:
    """Continue without a default delegate that could not be applied; the graph is unchanged.

    Returns:
        Whether the delegate is to be applied at the next allocation, because the core rejects the
        model, too.

    Raises:
        DefaultDelegateWarning: the user turns warnings into errors.
    """
    if _core_refuses(first):
        return True
    leave_out(first.session, delegate, incident_of(delegate, 0, error), error)
    return False


def _core_refuses(first: Subgraph) -> bool:
    """Whether Delegraph's kernels reject the model, too, so that the delegate is not at fault."""
    if first.is_allocated:
        return False
    before = first.snapshot()
    try:
        first.prepare_all()
    except CallCancelledError:
        raise
    except Exception:  # noqa: BLE001 - users get it when they allocate
        return True
    finally:
        first.restore(before)
    return False


# -- allocating ----------------------------------------------------------------------------------


def allocate(
    stack: Stack, subgraph: Subgraph, wanted: Sequence[AppliedDelegate], error: Exception | None
) -> None:
    """Allocate a subgraph without the default delegates that fail.

    Args:
        stack: the delegates of the subgraph.
        subgraph: the subgraph.
        wanted: the delegates of the subgraph before the allocation was tried.
        error: error of that allocation; None if it succeeded or was not tried.

    Raises:
        DelegateError: a delegate that users named cannot be applied to the new shapes.
        NodeError: a node also fails without the default delegates.
    """
    session = subgraph.session
    if error is None:
        error = _error_of_allocating(stack, subgraph, _without_failed(session, stack.wanted))
        if error is None and _without_failed(session, stack.wanted) != stack.wanted:
            error = _error_of_allocating(stack, subgraph, _without_failed(session, stack.wanted))
    if error is not None:
        _allocate_without(stack, subgraph, wanted, error)


def _error_of_allocating(
    stack: Stack, subgraph: Subgraph, delegates: Sequence[AppliedDelegate]
) -> Exception | None:
    """Let *stack* apply *delegates*, and allocate *subgraph*; return the error, or None."""
    try:
        if delegates != stack.wanted:
            stack.start_again(delegates)
        stack.reapply()
        subgraph.allocate()
    except CallCancelledError:
        raise
    except Exception as error:  # noqa: BLE001 - raised when no default delegate is left
        return error
    return None


def _allocate_without(
    stack: Stack, subgraph: Subgraph, wanted: Sequence[AppliedDelegate], error: Exception
) -> None:
    """Allocate *subgraph* without the default delegate that raised *error*.

    If that fails too, leave out the next delegate that fails, until none remains. *wanted* are the
    delegates before, in order, and *stack* applies them.

    Raises:
        Exception: *error* or a later error, if the allocation fails without any default delegate.
    """
    session = subgraph.session
    left = list(_without_failed(session, wanted))
    failed: list[tuple[Delegate, Exception]] = []
    while any(session.is_by_default(each.delegate) for each in left):
        defaults = [a.delegate for a in left if session.is_by_default(a.delegate)]
        guilty = blamed(defaults, error)
        failed.append((guilty, error))
        left = [each for each in left if each.delegate is not guilty]
        next_error = _error_of_allocating(stack, subgraph, left)
        if next_error is not None:
            error = next_error
            continue
        for delegate, reason in failed:
            found = incident_of(delegate, subgraph.spec.index, reason)
            leave_out(session, delegate, found, reason)
        return
    stack.start_again(wanted)  # the core fails as well; other shapes may work
    raise error from error.__cause__


def _without_failed(
    session: SharedState, applied: Sequence[AppliedDelegate]
) -> Sequence[AppliedDelegate]:
    """Return *applied* without the default delegates that have failed in this interpreter."""
    return [each for each in applied if not session.has_failed_by_default(each.delegate)]


def without_those_off(
    subgraphs: Iterable[Subgraph], delegates: Iterable[Delegate]
) -> list[Delegate]:
    """Return *delegates* without the default delegates that have failed.

    A delegate that one of *subgraphs* uses now, or will use after the next allocation, is kept.
    """
    known = [(s.session, (*s.plan.applied, *s.plan.undone)) for s in subgraphs]
    present = {id(each.delegate) for _, applied in known for each in applied}
    session = known[0][0]
    return [d for d in delegates if id(d) in present or not session.has_failed_by_default(d)]
