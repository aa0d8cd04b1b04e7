"""Delegates that a model gets without asking: the user's, and those of its custom operators.

Those of partitions that were compiled ahead of time come with the file.

Source:
    InterpreterBuilder, tflite/core/interpreter_builder.cc: the Flex delegate comes first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from delegraph.delegation.compiled_partition import CUSTOM_OP
from delegraph.delegation.configuration import CONFIG_VARIABLE, configuration
from delegraph.delegation.delegate import Delegate
from delegraph.errors import ConfigurationError, PluginError
from delegraph.graph.model import Model
from delegraph.plugins.address import DelegateAddress
from delegraph.plugins.plugin_set import installed
from delegraph.runtime.delegates.choice import installed_delegate, isolated
from delegraph.runtime.delegates.compiled_partitions import compiled_delegate, compilers_of
from delegraph.runtime.isolation.isolation import AS_SPECIFIED, Isolation
from delegraph.runtime.isolation.source import DelegateSource
from delegraph.runtime.op_resolver import OpResolverType
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
    try:
        return [installed_delegate(name, None, isolation) for name in user.delegates or ()]
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
    isolation = session.options.isolation
    compiled = compiled_by(session.model, isolation) if CUSTOM_OP in custom_ops else []
    called = called_for(custom_ops, asked_for, isolation) if are_wanted(resolver) else []
    return [*compiled, *called, *asked_for]


def compiled_by(model: Model, isolation: Isolation = AS_SPECIFIED) -> list[Delegate]:
    """Return the delegates of a file's compiled partitions, in the order in which they occur.

    Args:
        model: the file.
        isolation: which of them get a process of their own.

    Raises:
        MalformedModelError: a compiled partition is damaged.
    """
    return [_of_compiler(compiler, isolation) for compiler in compilers_of(model)]


def _of_compiler(compiler: DelegateAddress, isolation: Isolation) -> Delegate:
    try:
        offer = installed().find(compiler)
    except PluginError:  # it leaves its nodes and says why
        return compiled_delegate(compiler)
    isolation = isolation.of(offer.spec)
    if isolation.is_wanted:
        return isolated(DelegateSource(offer.address, is_compiled=True), isolation.timeout)
    isolation.require_no_timeout(f"delegate {compiler.name!r}")
    return compiled_delegate(compiler)


def called_for(
    custom_ops: Collection[str],
    asked_for: Sequence[Delegate] = (),
    isolation: Isolation = AS_SPECIFIED,
) -> list[Delegate]:
    """Return the installed delegates that *custom_ops* call for, but for those in *asked_for*.

    Raises:
        PluginError: the code of one failed.
    """
    if not custom_ops:
        return []
    names = {delegate.name() for delegate in asked_for}
    offers = installed().for_custom_ops(custom_ops)
    wanted = [offer.address for offer in offers if offer.spec.name not in names]
    return [installed_delegate(address, None, isolation) for address in wanted]
