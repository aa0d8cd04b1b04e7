"""Applies delegates that no argument names: configured, for custom operators, and the default.

Delegates of partitions that were compiled ahead of time come with the file. Modules that find
configured delegates are imported only if some may be configured. The default delegate computes the
nodes that all requested delegates reject. It corresponds to XNNPACK in the official runtime. A
delegate declares by ``DelegateSpec.default_rank`` that it may be the default delegate.

Source:
    InterpreterBuilder, tflite/core/interpreter_builder.cc: the Flex delegate comes first, and
    XNNPACK is applied last, to what the others leave. Interpreter::ApplyLazyDelegateProviders,
    tflite/core/interpreter.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delegraph.errors import ConfigurationError, PluginError, in_words
from delegraph.log import Logger
from delegraph.runtime.arguments import OpResolverType, default_delegates_are_wanted
from delegraph.runtime.delegated_plan import delegate_name

if TYPE_CHECKING:
    from delegraph.delegation.delegate import Delegate
    from delegraph.runtime.options import FailurePolicy
    from delegraph.runtime.session import Session


def configured(failures: FailurePolicy | None = None) -> list[Delegate]:
    """Return the delegates that the environment or the configuration file names, in order.

    Args:
        failures: policy that says which delegates run in a separate process; None follows their
            specs.

    Raises:
        ConfigurationError: one of the delegates cannot be created.
    """
    from delegraph.delegation.configuration import DEFAULT_DELEGATES_VARIABLE, default_delegates

    names, source = default_delegates()
    if not names:
        return []
    from delegraph.runtime.delegates.requested_delegates import installed_delegate
    from delegraph.runtime.isolation.isolation import AS_SPECIFIED

    isolation = AS_SPECIFIED if failures is None else failures.isolation
    try:
        return [installed_delegate(name, None, isolation) for name in names]
    except PluginError as error:
        raise ConfigurationError(
            f"{source}: {error} ({DEFAULT_DELEGATES_VARIABLE}= names none)"
        ) from error


def apply(
    session: Session,
    asked_for: Sequence[Delegate],
    resolver: OpResolverType,
    is_left_open: bool,
) -> None:
    """Apply the requested delegates to a new session, then default ones if *resolver* allows.

    Args:
        session: the new session.
        asked_for: the requested delegates, by name or as objects.
        resolver: decides whether the model gets delegates that no argument names.
        is_left_open: whether the argument ``delegates`` was left out; then the delegates of
            :func:`configured` are applied.

    Raises:
        ConfigurationError: a configured delegate cannot be created.
        MalformedModelError: a compiled partition is damaged.
        PluginError: the code of a delegate's plugin failed.
        DelegateError: a delegate failed.
        PlacementError: the placement does not meet rules or ``require``.
    """
    # Whether a kernel has created this interpreter.
    is_nested = session.options.limits.cancellation is not None
    if is_left_open and default_delegates_are_wanted(resolver) and not is_nested:
        asked_for = session.by_default = configured(session.options.failures)
        if asked_for:
            from delegraph.delegation.configuration import default_delegates
            from delegraph.runtime.delegates.default_incidents import recall_failures
            from delegraph.runtime.delegates.failure_memory import FailureMemory

            names = default_delegates()[0] or ()
            addresses = {id(d): name for d, name in zip(asked_for, names, strict=True)}
            session.failure_memory = FailureMemory(session.model, session.cache_dir, addresses)
            recall_failures(session, session.failure_memory)
    asked_for = added_to(asked_for, session, resolver)
    if asked_for:
        session.apply_all(asked_for)
    if default_delegates_are_wanted(resolver) and not is_nested and _has_rest(session):
        apply_to_the_rest(session)


def _has_rest(session: Session) -> bool:
    """Whether a default delegate may claim the nodes that other delegates left.

    No default delegate is applied if the user's configuration names the defaults. Nor is one
    applied if the user demands reference numerics, the values of all tensors, or delegates for all
    nodes.
    """
    options = session.options
    from delegraph.delegation.configuration import default_delegates

    is_plain = options.numerics == "builtin" and not options.preserve_all_tensors
    return is_plain and options.placement.require is None and default_delegates()[0] is None


def added_to(
    asked_for: Sequence[Delegate], session: Session, resolver: OpResolverType
) -> list[Delegate]:
    """Return the delegates to apply: delegates that the model needs, then *asked_for*.

    First come the delegates of the model's compiled partitions, which no kernel can run. Then, if
    *resolver* allows, come the delegates for its custom operators.

    Raises:
        MalformedModelError: a compiled partition is damaged.
        PluginError: the code of a delegate's plugin failed.
    """
    custom_ops = session.unresolved_custom_ops()
    if not custom_ops:
        return [*asked_for]
    from delegraph.runtime.delegates.custom_op_delegates import CUSTOM_OP, called_for, compiled_by

    isolation = session.options.failures.isolation
    compiled = compiled_by(session.model, isolation) if CUSTOM_OP in custom_ops else []
    called = (
        called_for(custom_ops, asked_for, isolation)
        if default_delegates_are_wanted(resolver)
        else []
    )
    return [*compiled, *called, *asked_for]


logger = Logger(__name__)


def apply_to_the_rest(session: Session) -> None:
    """Apply the default delegate to the nodes that no other delegate of *session* has.

    This happens only if it is installed and ready, and was not requested. If it fails, the model
    runs without it; see ``default_failures``.
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
    """Apply a requested delegate; the default delegate gets only nodes that this delegate rejects.

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
    """Return the session's default delegate, which gets the nodes that others left; else None."""
    return next((delegate for delegate in session.delegates if delegate is session.rest), None)


def ready_delegate(session: Session) -> Delegate | None:
    """Return a new default delegate; None if there is none that can run now.

    The result is None if no default delegate is installed, or if it must compile first; the log
    says so. It is also None if the delegate cannot be created; then an incident is recorded.
    """
    from delegraph.plugins.creation import make_delegate  # here: not for configured delegates
    from delegraph.plugins.default_offer import default_offer

    offer = default_offer()
    if offer is None:
        _tell_of_unready(session)
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


told: set[str] = set()
"""Names of the delegates in earlier warnings of this process."""


def _tell_of_unready(session: Session) -> None:
    """Warn once if a default delegate is installed, cannot run yet, and was not requested."""
    from delegraph.plugins import installed

    offered = [offer.spec.name for offer in installed().defaults()]
    if not {delegate_name(applied) for applied in session.delegates}.isdisjoint(offered):
        return
    names = ", ".join(offered)
    if not names:
        logger.info("no delegate is applied by default: none is installed")
    elif names not in told:
        told.add(names)
        logger.warning(
            "models run on Delegraph's own, slow kernels: %s is installed, but not ready to run; "
            "'delegraph doctor' says what to do",
            names,
        )
