"""Delegates that a model gets without asking: the user's, and those of its custom operators.

Source:
    InterpreterBuilder, tflite/core/interpreter_builder.cc: the Flex delegate comes first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from delegraph.delegation.configuration import CONFIG_VARIABLE, configuration
from delegraph.delegation.delegate import Delegate
from delegraph.errors import ConfigurationError, PluginError
from delegraph.plugins.plugin_set import installed
from delegraph.runtime.op_resolver import OpResolverType


def are_wanted(resolver: OpResolverType) -> bool:
    """Return whether models get delegates without asking under *resolver*."""
    return resolver in (OpResolverType.AUTO, OpResolverType.BUILTIN)


def configured() -> list[Delegate]:
    """Return the delegates that the user's configuration file names, in its order.

    Raises:
        ConfigurationError: one of them cannot be had.
    """
    user = configuration()
    try:
        return list(map(installed().create_delegate, user.delegates or ()))
    except PluginError as error:
        raise ConfigurationError(
            f"configuration file {str(user.path)!r}: delegates: {error} "
            f"({CONFIG_VARIABLE}= reads no file)"
        ) from error


def added_to(asked_for: Sequence[Delegate], custom_ops: Collection[str]) -> list[Delegate]:
    """Return the delegates to apply: installed ones that *custom_ops* call for, then *asked_for*.

    A delegate that is asked for is not added a second time.

    Args:
        asked_for: by name or as objects.
        custom_ops: the model's custom operators that no kernel provides.

    Raises:
        PluginError: the code of a delegate that is called for failed.
    """
    if not custom_ops:
        return list(asked_for)
    names = {delegate.name() for delegate in asked_for}
    offers = installed().for_custom_ops(custom_ops)
    default = [o.address for o in offers if o.spec.name not in names]
    return [*map(installed().create_delegate, default), *asked_for]
