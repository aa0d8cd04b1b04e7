"""The incident and the warning of a delegate that is applied by default and has failed."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from delegraph.delegation.incident import Incident
from delegraph.errors import DefaultDelegateWarning, DelegateError, in_words
from delegraph.runtime.delegated_plan import delegate_name
from delegraph.runtime.delegates.failure_memory import FailureMemory, origin_of

if TYPE_CHECKING:
    from delegraph.delegation.delegate import Delegate
    from delegraph.runtime.shared_state import SharedState


def leave_out(
    session: SharedState, delegate: object, incident: Incident, error: BaseException | None = None
) -> None:
    """Stop using a default delegate, record its failure, and give a warning for the first one.

    *error* is stored for later processes; None means that it is stored already.

    Raises:
        DefaultDelegateWarning: the user turns warnings into errors.
    """
    session.supervision.quarantine(delegate)
    tell(session, delegate, incident, error)


def tell(
    session: SharedState, delegate: object, incident: Incident, error: BaseException | None
) -> None:
    """Record a failure of a default delegate, store it on disk, and warn of the first one.

    *error* is stored for later processes; None means that it is stored already.

    Raises:
        DefaultDelegateWarning: the user turns warnings into errors.
    """
    session.incidents.record(incident, level=logging.INFO)  # the warning reports it
    if error is not None:
        memory = session.failure_memory
        if memory is None:
            memory = FailureMemory(session.model, session.cache_dir)
        memory.keep(delegate, incident, error, session.inputs)
    if not session.supervision.has_warned:
        session.supervision.has_warned = True
        warn_of(incident)


def recall_failures(session: SharedState, memory: FailureMemory) -> None:
    """Stop using default delegates of *session* that failed in an earlier process.

    *memory* has the earlier failures; only failures with the same input shapes count.

    Raises:
        DefaultDelegateWarning: the user turns warnings into errors.
    """
    memory.begin()
    for delegate in session.by_default:
        if not session.supervision.is_quarantined(delegate):
            known = memory.recall(delegate, delegate_name(delegate), session.inputs)
            if known is not None:
                leave_out(session, delegate, known)


def warn_of(incident: Incident, heir: str = "Delegraph's kernels") -> None:
    """Give the warning of an incident.

    *heir* names the delegate or the kernels that compute its nodes instead.

    Raises:
        DefaultDelegateWarning: the user turns warnings into errors.
    """
    warnings.warn(_warning(incident, heir), DefaultDelegateWarning, stacklevel=_outside())


def _warning(incident: Incident, heir: str) -> str:
    at = f" at node {incident.node_index} of subgraph {incident.subgraph}"
    return (
        f"delegate {incident.delegate!r}, which is applied by default, failed in phase "
        f"{incident.phase}{at * (incident.node_index >= 0)}: {incident.error}. {heir} compute its "
        "nodes instead: the results are right, and take longer. Please report this text, what "
        "'delegraph doctor' prints and the model to the authors of "
        f"{origin_of(incident.delegate)}. delegates=[] does without default delegates."
    )


def _outside() -> int:
    """Return the ``stacklevel`` for a warning that points to the first caller outside Delegraph."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("delegraph."):
        frame, level = frame.f_back, level + 1
    return level


def incident_of(delegate: Delegate, subgraph: int, error: BaseException) -> Incident:
    """Return the record of a failure of *delegate* with *error* in subgraph number *subgraph*.

    Its text is that of the cause nearest the delegate.
    """
    found = next((e for e in reversed([*causes(error)]) if isinstance(e, DelegateError)), None)
    if found is None:
        return Incident(delegate_name(delegate), subgraph, -1, (), "claim", in_words(error))
    node = -1 if found.node_index is None else found.node_index
    phase = found.phase or "claim"
    return Incident(delegate_name(delegate), subgraph, node, (), phase, in_words(found))


def blamed(delegates: Sequence[Delegate], error: BaseException) -> Delegate:
    """Return the delegate that *error* names, or the last delegate if the error names none."""
    names = {each.delegate for each in causes(error) if isinstance(each, DelegateError)}
    return next((d for d in delegates if delegate_name(d) in names), delegates[-1])


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, its cause, the cause's cause and so on."""
    while error is not None:
        yield error
        error = error.__cause__
