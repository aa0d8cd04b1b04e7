"""The incident and the warning of a delegate that is applied by default and has failed."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from delegraph.delegation.incident import Incident
from delegraph.errors import DefaultDelegateWarning, DelegateError, in_words
from delegraph.runtime.delegates.delegated_plan import delegate_name

if TYPE_CHECKING:
    from delegraph.delegation.delegate import Delegate
    from delegraph.runtime.shared_state import SharedState


def leave_out(session: SharedState, delegate: object, incident: Incident) -> None:
    """Do without a default delegate from now on; say why, by a warning the first time.

    Raises:
        DefaultDelegateWarning: where users turn warnings into errors.
    """
    session.incidents.record(incident, level=logging.INFO)  # the warning says it
    session.supervision.quarantine(delegate)
    if not session.supervision.has_warned:
        session.supervision.has_warned = True
        warn_of(incident)


def warn_of(incident: Incident, heir: str = "Delegraph's kernels") -> None:
    """Give the warning of an incident.

    Args:
        incident: what a default delegate did wrong.
        heir: what computes its nodes instead.

    Raises:
        DefaultDelegateWarning: where users turn warnings into errors.
    """
    warnings.warn(_warning(incident, heir), DefaultDelegateWarning, stacklevel=_outside())


def _warning(incident: Incident, heir: str) -> str:
    at = f" at node {incident.node_index} of subgraph {incident.subgraph}"
    return (
        f"delegate {incident.delegate!r}, which is applied by default, failed in phase "
        f"{incident.phase}{at * (incident.node_index >= 0)}: {incident.error}. {heir} compute its "
        "nodes instead: the results are right, and take longer. Please report this text, what "
        "'delegraph doctor' prints and the model to the authors of "
        f"{_origin(incident.delegate)}. delegates=[] does without default delegates."
    )


def _origin(name: str) -> str:
    """Return the distribution of a delegate with its version, as far as it is known."""
    from delegraph.plugins.plugin_set import installed  # here: few interpreters need it

    for offer in installed().offers():
        if offer.spec.name == name:
            return f"{offer.plugin.distribution} {offer.plugin.version}"
    return f"delegate {name!r}"


def _outside() -> int:
    """Return the ``stacklevel`` of the first caller outside this package, seen from our caller."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("delegraph."):
        frame, level = frame.f_back, level + 1
    return level


def incident_of(delegate: Delegate, subgraph: int, error: BaseException) -> Incident:
    """Return the incident of an error, in the words of the cause nearest to the delegate."""
    found = next((e for e in reversed([*causes(error)]) if isinstance(e, DelegateError)), None)
    if found is None:
        return Incident(delegate_name(delegate), subgraph, -1, (), "claim", in_words(error))
    node = -1 if found.node_index is None else found.node_index
    phase = found.phase or "claim"
    return Incident(delegate_name(delegate), subgraph, node, (), phase, in_words(found))


def blamed(delegates: Sequence[Delegate], error: BaseException) -> Delegate:
    """Return the delegate that an error names; the last one if it names none of them."""
    names = {each.delegate for each in causes(error) if isinstance(each, DelegateError)}
    return next((d for d in delegates if delegate_name(d) in names), delegates[-1])


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, its cause, the cause of that, and so on."""
    while error is not None:
        yield error
        error = error.__cause__
