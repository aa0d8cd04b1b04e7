"""Rejects options that have no effect without another option."""

from __future__ import annotations

from collections.abc import Iterable

import click
from click.core import ParameterSource


def require_effect(names: Iterable[str], reason: str) -> None:
    """Raise an error if the user typed one of the options *names*, which would have no effect.

    *names* are those in Python. *reason* follows the option's name in the message, such as
    ``"needs --layers"``.

    Raises:
        UsageError: one of the options was typed.
    """
    context, in_vain = click.get_current_context(), frozenset(names)
    for parameter in context.command.params:
        name = parameter.name or ""
        typed = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if typed and name in in_vain:
            raise click.UsageError(f"{parameter.opts[-1]} {reason}")
