"""Rejects options that have no effect without another option."""

from __future__ import annotations

from collections.abc import Iterable

import click
from click.core import ParameterSource


def require_effect(names: Iterable[str], reason: str) -> None:
    """Raise an error if one of the options *names*, which have no effect, was typed.

    Args:
        names: of the options, as the command gets them.
        reason: such as ``"needs --layers"``, after the option's name in the message.

    Raises:
        UsageError: one of the options was typed.
    """
    context, in_vain = click.get_current_context(), frozenset(names)
    for parameter in context.command.params:
        name = parameter.name or ""
        typed = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if typed and name in in_vain:
            raise click.UsageError(f"{parameter.opts[-1]} {reason}")
