"""The default delegate, which computes the nodes that all requested delegates reject.

It corresponds to XNNPACK in the official runtime. A delegate declares by
``DelegateSpec.default_rank`` that it may be the default delegate.

Source:
    Interpreter::ApplyLazyDelegateProviders, tflite/core/interpreter.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from delegraph.errors import PluginError, in_words
from delegraph.log import Logger
from delegraph.plugins.creation import make_delegate
from delegraph.plugins.default_offer import default_offer
from delegraph.runtime.delegated_plan import delegate_name

if TYPE_CHECKING:
    from delegraph.delegation.delegate import Delegate
    from delegraph.runtime.session import Session

logger = Logger(__name__)


def apply_to_the_rest(session: Session) -> None:
    """Apply the default delegate to *session* if it is installed and ready, and was not requested.

    If it fails, the model runs without it; see ``default_failures``.
    """
    delegate = ready_delegate(session)
    if delegate is None:
        return
    name = delegate_name(delegate)
    if any(delegate_name(applied) == name for applied in session.delegates):
        return
    session.by_default = [*session.by_default, delegate]
    session.rest = delegate
    session.apply(delegate)


def apply_before_the_rest(session: Session, delegate: Delegate) -> None:
    """Apply a requested delegate so that it comes before the default delegate.

    Raises:
        DelegateError: the requested delegate failed; the delegates are as they were before.
    """
    rest = rest_of(session)
    if rest is None:
        session.apply(delegate)
        return
    session.remove(delegate_name(rest))
    try:
        session.apply(delegate)
    finally:
        if not any(applied is rest for applied in session.delegates):
            session.apply(rest)


def rest_of(session: Session) -> Delegate | None:
    """Return the default delegate applied to the session, or None if there is none."""
    return next((delegate for delegate in session.delegates if delegate is session.rest), None)


def ready_delegate(session: Session) -> Delegate | None:
    """Return a new default delegate; None if none is installed, or if it must compile first.

    If the delegate cannot be created, an incident is recorded.
    """
    offer = default_offer()
    if offer is None:
        logger.info("no delegate is applied by default: none is installed and ready")
        return None
    spec, plugin = offer
    try:
        return make_delegate(spec, None, plugin)
    except PluginError as error:
        from delegraph.delegation.incident import Incident
        from delegraph.runtime.delegates.default_incidents import tell

        name, text = spec.name, in_words(error)
        tell(session, None, Incident(name, 0, -1, (), "initialize", text), error)
        return None
