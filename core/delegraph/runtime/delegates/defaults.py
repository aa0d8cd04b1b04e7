"""Delegates that a model gets without asking: the user's, and those of its custom operators.

Those of partitions that were compiled ahead of time come with the file. What looks for delegates is
imported where there is one to look for.

Source:
    InterpreterBuilder, tflite/core/interpreter_builder.cc: the Flex delegate comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delegraph.delegation.configuration import CONFIG_VARIABLE, configuration
from delegraph.errors import ConfigurationError, PluginError
from delegraph.runtime.isolation.isolation import AS_SPECIFIED, Isolation
from delegraph.runtime.op_resolver import OpResolverType

if TYPE_CHECKING:
    from delegraph.delegation.delegate import Delegate
    from delegraph.runtime.session import Session


def are_wanted(resolver: OpResolverType) -> bool:
    """Return whether models get delegates without asking under *resolver*."""
    return resolver in (OpResolverType.AUTO, OpResolverType.BUILTIN)


def configured(isolation: Isolation = AS_SPECIFIED) -> list[Delegate]:
    """Return the delegates that the user's configuration file names, in its order.

    Args:
        isolation: which of them get a process of their own.

    Raises:
        ConfigurationError: one of them cannot be had.
    """
    user = configuration()
    if not user.delegates:
        return []
    from delegraph.runtime.delegates.choice import installed_delegate

    try:
        return [installed_delegate(name, None, isolation) for name in user.delegates]
    except PluginError as error:
        raise ConfigurationError(
            f"configuration file {str(user.path)!r}: delegates: {error} "
            f"({CONFIG_VARIABLE}= reads no file)"
        ) from error


def added_to(
    asked_for: Sequence[Delegate], session: Session, resolver: OpResolverType
) -> list[Delegate]:
    """Return the delegates to apply: those that the model gets without asking, then *asked_for*.

    First come those of its compiled partitions, which nothing else can run. Then, unless *resolver*
    is against it, those that its custom operators call for.

    Args:
        asked_for: by name or as objects.
        session: what runs the model.
        resolver: whether models get delegates without asking.

    Raises:
        MalformedModelError: a compiled partition is damaged.
        PluginError: the code of a delegate that is called for failed.
    """
    custom_ops = session.unresolved_custom_ops()
    if not custom_ops:
        return [*asked_for]
    from delegraph.runtime.delegates.custom_op_delegates import CUSTOM_OP, called_for, compiled_by

    isolation = session.options.isolation
    compiled = compiled_by(session.model, isolation) if CUSTOM_OP in custom_ops else []
    called = called_for(custom_ops, asked_for, isolation) if are_wanted(resolver) else []
    return [*compiled, *called, *asked_for]
