"""Arguments and options that several subcommands share."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from typing import Any, cast

import click
from click.shell_completion import CompletionItem

from delegraph.cli.answers.log_lines import LEVELS, show_from
from delegraph.cli.answers.printing import only_json_printed
from delegraph.cli.options.kinds import (
    Command,
    choice_option,
    file_option,
    group,
    number_option,
    seconds_option,
    switch_option,
)

TRACEBACK = "--traceback"
JSON = "--json"


class ByteCount(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic since 8.2
    """Option type: a number of bytes, ``4096``, ``1.5GB`` or ``256K``; K is 1024, kB 1000."""

    name = "SIZE"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """Return a number of bytes from text such as ``256K``."""
        from delegraph.delegation.configuration import byte_count

        try:
            return byte_count(str(value))
        except ValueError:
            self.fail(f"{value!r} is no size, expected 4096, 256K or 1.5MB", param, ctx)


class ModelPath(click.Path):
    """Option type: an existing file, or ``FILE#SECTION``; the loader rejects folders."""

    def __init__(self) -> None:
        super().__init__(exists=True, readable=True)
        self.name = "file"  # the name that messages use

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the address unchanged, if its file exists."""
        from delegraph.bundles.opening import split_address

        super().convert(split_address(os.fsdecode(value))[0], param, ctx)
        return value


def model_argument(command: Command) -> Command:
    """Add the MODEL argument."""
    return click.argument("model", type=ModelPath())(command)


def delegate_option(command: Command) -> Command:
    """Add ``--delegate`` and ``--delegate-file``, which may be repeated.

    The command gets ``delegates`` and ``delegate_files`` as typed; ``Setup.requested_delegates``
    joins them.
    """
    files = click.option(
        "--delegate-file",
        "delegate_files",
        multiple=True,
        metavar="FILE.py[:K=V]",
        help="Apply the delegate of a Python file, after those of --delegate.",
    )
    return _named("Delegate, repeatable; or help, all, default, none, ./lib.so.")(files(command))


def named_delegate_option(command: Command) -> Command:
    """Add ``--delegate`` for installed delegates; the command gets *delegates*."""
    text = "Compile for a delegate; repeatable. 'help' lists them."
    return _named(text, compiles=True)(command)


def _named(text: str, *, compiles: bool = False) -> Callable[[Command], Command]:
    """Return a decorator that adds the repeatable ``--delegate``, with *text* as its help."""
    return click.option(
        "-d",
        "--delegate",
        "delegates",
        multiple=True,
        is_eager=True,  # so that help is printed even if other arguments are missing or wrong
        callback=functools.partial(_print_delegate_help, compiles=compiles),
        shell_complete=complete_delegate,
        metavar="NAME[:K=V,...]",
        help=text,
    )


def complete_delegate(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the installed delegates whose names start with *incomplete*, for a shell."""
    from delegraph.plugins import installed

    offers = [offer for offer in installed().offers() if offer.spec.name.startswith(incomplete)]
    return [CompletionItem(offer.spec.name, help=offer.spec.summary) for offer in offers]


rule_options = group(
    file_option(
        "--rules",
        "Pin nodes to delegates or keep delegates off them.",
        metavar="FILE.toml",
    ),
    choice_option("--require", ["full"], "Fail unless named delegates compute every node."),
)
"""Decorator that adds ``--rules`` and ``--require``: fields of ``PlacementPolicy``."""

placement_options = group(
    rule_options,
    choice_option(
        "--partition-policy",
        ["largest", "measured"],
        "Partitions that are kept.",
        default="largest",
    ),
)
"""Decorator that adds ``--partition-policy`` and :data:`rule_options`."""

isolation_options = group(
    choice_option(
        "--isolate", ["process", "none"], "Where delegates run.", show_default="as packaged"
    ),
    seconds_option("--timeout", "Longest invoke of an isolated delegate.  [default: as packaged]"),
)
"""Decorator that adds ``--isolate`` and ``--timeout``: fields of ``FailurePolicy``."""

failure_options = group(
    choice_option(
        "--on-failure",
        ["raise", "fallback", "shadow"],
        "On a failure.",
        show_default="raise; isolated: fallback",
    ),
    switch_option("--validate", "Check what delegates write: NaN, shapes, ranges of integers."),
)
"""Decorator that adds ``--on-failure`` and ``--validate``: fields of ``FailurePolicy``."""

weights_dir_option = click.option(
    "--weights-dir",
    type=click.Path(exists=True, file_okay=False),
    metavar="DIR",
    help="Another folder from which constants may be read.",
)
"""Decorator that adds ``--weights-dir``: the folder that may hold constants in other files."""

table_limit_option = number_option(
    "--table-limit", "Most operators, options, tensors of a file.  [default: 1000000]", least=0
)
"""Decorator that adds ``--table-limit``: most operators, options and tensors in a file."""

limit_options = group(
    seconds_option("--time-limit", "Time to prepare, and to run; exit 4 if over.  [default: none]"),
    number_option("--depth-limit", "Deepest nesting of subgraph calls.  [default: 50]", least=0),
    table_limit_option,
    weights_dir_option,
    click.option(
        "--memory-limit",
        type=ByteCount(),
        help="Memory for tensors: 512MB, 2GB.  [default: what suits the file]",
    ),
)
"""Decorator that adds ``--time-limit`` and the other limits, as in ``Limits``."""

runtime_option = choice_option(
    "--runtime", ["delegraph", "litert", "litert2"], "Runtime of the model.", default="delegraph"
)
"""Decorator that adds ``--runtime``: the name of the interpreter that runs the model."""


def json_option(command: Command) -> Command:
    """Add ``--json``; with it, only JSON goes to standard output."""

    @functools.wraps(command)
    def run(*arguments: Any, as_json: bool, **options: Any) -> Any:
        with only_json_printed() if as_json else contextlib.nullcontext():
            return command(*arguments, as_json=as_json, **options)

    option = click.option(JSON, "as_json", is_flag=True, help="Print JSON.")
    return option(cast(Command, run))


def _show_log(ctx: click.Context, parameter: click.Parameter, value: str | int | None) -> None:
    """Show the log from the level of ``--log-level``, or from the level of repeated ``-v``."""
    if value and not ctx.resilient_parsing:
        show_from(value if isinstance(value, str) else "info" if value == 1 else "debug")


_LOGGED: dict[str, Any] = {"is_eager": True, "expose_value": False, "callback": _show_log}

diagnosis_options = group(
    click.option("-v", "--verbose", count=True, help="Show each step; -vv shows more.", **_LOGGED),
    choice_option(
        "--log-level",
        LEVELS,
        "Show the log: debug, info, warning, error.  [default: warning]",
        metavar="LEVEL",
        **_LOGGED,
    ),
    click.option(
        TRACEBACK, is_flag=True, expose_value=False, help="Show Python's traceback of an error."
    ),
)
"""Decorator that adds ``-v``, ``--log-level`` and ``--traceback``."""


def print_version(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    """If *wanted*, print the versions and exit, without importing any plugin."""
    if wanted:
        from importlib.metadata import version

        from delegraph.plugins.choice import PluginChoice
        from delegraph.plugins.discovery import declared_plugins
        from delegraph.plugins.plugin import PluginState

        click.echo(f"delegraph {version('delegraph')}")
        for plugin in declared_plugins(PluginChoice.of(None, None)):
            state = "" if plugin.state is PluginState.OK else f", {plugin.state.value}"
            click.echo(f"  {plugin.distribution} {plugin.version} (plugin {plugin.name}{state})")
        ctx.exit()


def _print_delegate_help(
    ctx: click.Context, parameter: click.Parameter, delegates: tuple[str, ...], *, compiles: bool
) -> tuple[str, ...]:
    """Print the options of installed delegates and exit, if a name is ``help``."""
    wanted = [name for name in delegates if name == "help" or name.endswith(":help")]
    if wanted and not ctx.resilient_parsing:
        from delegraph.cli.options.delegate_help import print_delegate_help

        print_delegate_help(wanted, compiles=compiles)
        ctx.exit()
    return delegates
