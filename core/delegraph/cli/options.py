"""Arguments and options that several subcommands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

TRACEBACK = "--traceback"

Command = TypeVar("Command", bound=Callable[..., Any])


def model_argument(command: Command) -> Command:
    """Add the MODEL argument: an existing file."""
    kind = click.Path(exists=True, dir_okay=False, readable=True)
    return click.argument("model", type=kind)(command)


def delegate_option(command: Command) -> Command:
    """Add ``--delegate``, which may be repeated."""
    return click.option(
        "-d",
        "--delegate",
        "delegates",
        multiple=True,
        metavar="NAME[:KEY=VALUE,...]",
        help="Apply an installed delegate; repeat for several, applied in order. "
        "'delegraph plugins list' shows them.",
    )(command)


def json_option(command: Command) -> Command:
    """Add ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def traceback_option(command: Command) -> Command:
    """Add ``--traceback``; ``main`` looks for it among the words of the command line."""
    return click.option(
        TRACEBACK, is_flag=True, expose_value=False, help="Show where an error comes from."
    )(command)


def print_version(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    """Print the version and exit, when wanted."""
    if wanted:
        from importlib.metadata import version

        click.echo(f"delegraph {version('delegraph')}")
        ctx.exit()
