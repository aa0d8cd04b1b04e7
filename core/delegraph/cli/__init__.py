"""The ``delegraph`` command: one module a subcommand, imported when it is asked for.

Plugins are looked at only for a command that is not Delegraph's own, and to list theirs in help.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import click

from delegraph.cli.exit_codes import CHECK_FAILED, EPILOG, INTERRUPTED, OK, USAGE, exit_code_of
from delegraph.cli.options import TRACEBACK, print_version, traceback_option
from delegraph.cli.printing import warnings_shown

COMMANDS = ("run", "inspect", "explain", "memory", "plugins", "new")
"""Subcommands in the order of ``--help``; each is ``command`` in the module of that name."""


class CommandGroup(click.Group):
    """Imports a subcommand's module when it is asked for; Delegraph's own come before plugins'."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the subcommands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a subcommand; None when there is none of that name."""
        if cmd_name not in COMMANDS:
            from delegraph.plugins import installed

            return installed().load_command(cmd_name)
        command: click.Command = import_module(f"delegraph.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the subcommand that *args* start with; the error lists the valid ones."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            if args[0].startswith("-"):
                raise
            raise click.UsageError(_no_command(args[0])) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the subcommands, then those of plugins, whose modules are not imported for it."""
        from delegraph.plugins import installed

        super().format_commands(ctx, formatter)
        rows = [
            (name, providers[0][1].summary)
            for name, providers in installed().commands().items()
            if name not in COMMANDS
        ]
        if rows:
            with formatter.section("Commands of plugins"):
                formatter.write_dl(rows)


def _no_command(name: str) -> str:
    """Return what to say about a command that nothing offers."""
    from delegraph.plugins import installed

    plugins = installed()
    known = ", ".join(dict.fromkeys([*COMMANDS, *plugins.commands()]))
    message = f"no command {name!r}, expected one of: {known}"
    if any(plugin.is_faulty for plugin in plugins.plugins):
        message += "; a plugin that is not usable may have it, see 'delegraph plugins doctor'"
    return message


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_version,
    help="Print the version and exit.",
)
@traceback_option
@click.pass_context
def delegraph(ctx: click.Context) -> int:
    """Run TensorFlow Lite models, with delegates taking over parts of them."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        return USAGE
    return OK


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; errors are one line on standard error."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with warnings_shown():
            result = delegraph.main(words, prog_name="delegraph", standalone_mode=False)
        return result if isinstance(result, int) else OK
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", INTERRUPTED)
    except click.ClickException as error:
        return _fail(_with_help(error), error.exit_code)
    except Exception as error:  # the last stop before the user
        if TRACEBACK in words:
            raise
        code = exit_code_of(error)
        if code is not None:
            return _fail(str(error), code)
        kind = type(error).__name__
        return _fail(f"unexpected {kind}: {error} ({TRACEBACK} shows where)", CHECK_FAILED)


def _fail(message: str, code: int) -> int:
    click.echo(f"error: {_on_one_line(message)}", err=True)
    return code


def _on_one_line(message: str) -> str:
    """Return a message with its lines joined: by a blank after a full stop, else by ``;``."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    joined = "".join(line + (" " if line[-1] in ".:;," else "; ") for line in lines)
    return joined.rstrip("; ")


def _with_help(error: click.ClickException) -> str:
    """Return the message with, for a usage error, where help is."""
    message = error.format_message()
    if isinstance(error, click.UsageError) and error.ctx is not None:
        return f"{message.rstrip('.')} (see '{error.ctx.command_path} --help')"
    return message
