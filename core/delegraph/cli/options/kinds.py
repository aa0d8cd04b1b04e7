"""Kinds of options that many commands have, and groups of options that become one argument."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def switch_option(name: str, text: str) -> Callable[[Command], Command]:
    """Return a decorator that adds an option without a value, whose help is *text*."""
    return click.option(name, is_flag=True, help=text)


def choice_option(
    name: str, words: Sequence[str], text: str, *, default: str | None = None, **more: Any
) -> Callable[[Command], Command]:
    """Return a decorator that adds an option with one of some words as its value.

    Here and below, help shows the default unless it is None, and *more* are click's own arguments.
    """
    return _option(name, click.Choice(words), text, default, more)


def number_option(
    name: str, text: str, *, default: int | None = None, least: int = 1, **more: Any
) -> Callable[[Command], Command]:
    """Return a decorator that adds an option for an integer of at least *least*."""
    return _option(name, click.IntRange(least), text, default, more)


def seconds_option(
    name: str, text: str, *, default: float | None = None, metavar: str | None = "SECONDS"
) -> Callable[[Command], Command]:
    """Return a decorator that adds an option for a positive number, such as of seconds."""
    kind = click.FloatRange(0, min_open=True)
    return _option(name, kind, text, default, {"metavar": metavar})


def file_option(name: str, text: str, **more: Any) -> Callable[[Command], Command]:
    """Return a decorator that adds an option for an existing file, which the command reads."""
    return _option(name, click.Path(exists=True, dir_okay=False), text, None, more)


def _option(
    name: str, kind: Any, text: str, default: object, more: dict[str, Any]
) -> Callable[[Command], Command]:
    shown: dict[str, Any] = {} if default is None else {"default": default, "show_default": True}
    return click.option(name, type=kind, help=text, **shown, **more)


def with_options_added(command: Command, options: Sequence[Callable[[Any], Any]]) -> Command:
    """Return a command with *options* added, in the order of ``--help``."""
    added: Any = command
    for option in reversed(options):
        added = option(added)
    return cast(Command, added)


def group(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Return a decorator that adds *options*, in the order of ``--help``."""
    return lambda command: with_options_added(command, options)


def joined(
    command: Command, names: Sequence[str], argument: str, make: Callable[..., object]
) -> Command:
    """Return a function that calls *command* with several options as one argument.

    Args:
        command: function of a command.
        names: Python names of the options, which *command* does not get.
        argument: name of the argument of *command*.
        make: function that returns its value, from the options by name.
    """

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        given = {name: options.pop(name) for name in names}
        return command(*arguments, **{argument: make(**given)}, **options)

    return cast(Command, run)
