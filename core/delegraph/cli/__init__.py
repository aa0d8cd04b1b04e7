"""The ``delegraph`` command: one module for each subcommand, imported on demand.

Plugins are discovered only for a command that is not Delegraph's own, and to list their commands in
the help.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from delegraph.cli.answers.log_lines import shown_log
from delegraph.cli.answers.printing import JsonAnswer, write_json
from delegraph.cli.exit_codes import CHECK_FAILED, CODES, NOBODY_READS, OK, USAGE
from delegraph.cli.failure import Failure, speak_of_options
from delegraph.cli.options.arguments import JSON, TRACEBACK, diagnosis_options, print_version
from delegraph.cli.options.official_flags import own_words
from delegraph.cli.options.sections import SummarizedGroup, summarized, write_commands
from delegraph.errors import DelegraphError, printable

SECTIONS = {
    "Look at a model": ("inspect", "explain", "memory", "report"),
    "Run a model": ("run", "predict", "serve"),
    "Measure and compare": ("benchmark", "diff", "evaluate"),
    "Build and test delegates": ("new", "test", "test-operators"),
    "Look after this environment": ("plugins", "cache", "compile", "doctor"),
}
"""Headings of ``--help`` with their subcommands; each is ``command`` in its module."""

COMMANDS = tuple(name for names in SECTIONS.values() for name in names)
"""Names of the subcommands in the order of ``--help``."""


class ReaderGone(Exception):
    """Error: the reader of standard output, such as ``head``, has closed it.

    It is raised in place of a BrokenPipeError, for which click would end the process by itself.
    """


FAULT = "for a report of this fault: delegraph doctor --report FILE.md"
"""Advice that is printed after an unexpected error."""


class CommandGroup(SummarizedGroup):
    """Command group that imports a subcommand's module on demand.

    Delegraph's own subcommands take precedence over those of plugins.
    """

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the subcommands that start with *incomplete*, including those of plugins."""
        from delegraph.plugins import installed

        return super().shell_complete(ctx, incomplete) + [
            CompletionItem(name, help=providers[0][1].summary)
            for name, providers in installed().commands().items()
            if name.startswith(incomplete) and name not in COMMANDS
        ]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the subcommands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the subcommand *cmd_name*; None if it does not exist."""
        if cmd_name in COMMANDS:
            found: click.Command | None = _own_command(cmd_name)
        else:
            from delegraph.plugins import installed

            found = installed().load_command(cmd_name)
            found = None if found is None else summarized(found)
        if found is None or not ctx.resilient_parsing:
            return found
        from delegraph.cli.options.completion import with_completion

        return with_completion(found)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the subcommand at the start of *args*; the error lists the valid ones.

        Flags of the official tools among the other arguments become Delegraph's options. ``help``
        before a subcommand means ``--help`` after it.
        """
        if args[0] == "help" and args[1:] and not args[1].startswith("-"):
            args = [*args[1:], "--help"]
        try:
            name, command, words = super().resolve_command(ctx, args)
            return name, command, words if name is None else own_words(name, words)
        except click.UsageError:
            if args[0].startswith("-") or args[0] in COMMANDS:
                raise
            raise click.UsageError(_no_command(args[0])) from None

    def invoke(self, ctx: click.Context) -> object:
        """Run the subcommand; its errors name command-line options, not Python arguments."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGone from error
        except DelegraphError as error:
            if ctx.invoked_subcommand in COMMANDS:
                speak_of_options(error, _own_command(ctx.invoked_subcommand))
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the subcommands, then those of plugins, without importing the plugins' modules."""
        from delegraph.plugins import installed

        for heading, names in SECTIONS.items():
            write_commands(self, ctx, formatter, heading, names)
        rows = [
            (name, providers[0][1].summary)
            for name, providers in installed().commands().items()
            if name not in COMMANDS
        ]
        if rows:
            with formatter.section("Commands of plugins"):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the exit codes, and how shells complete words."""
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), text) for code, text in CODES.items()])
        with formatter.section("Completion with the Tab key, in your shell's start file"):
            formatter.write_dl(_COMPLETION)


_COMPLETION = (
    ("bash", 'eval "$(_DELEGRAPH_COMPLETE=bash_source delegraph)"'),
    ("zsh", 'eval "$(_DELEGRAPH_COMPLETE=zsh_source delegraph)"'),
    ("fish", "_DELEGRAPH_COMPLETE=fish_source delegraph | source"),
)
"""Commands that switch on completion in each shell."""


def _own_command(name: str) -> click.Command:
    command: click.Command = import_module(
        f"delegraph.cli.commands.{name.replace('-', '_')}"
    ).command
    return command


_ELSEWHERE = {
    "accuracy": "evaluate",
    "analyse": "inspect",
    "analyze": "inspect",
    "bisect": "diff --bisect",
    "check": "doctor",
    "compare": "diff",
    "convert": "flex convert",
    "delegates": "plugins list",
    "eval": "evaluate",
    "help": "--help",
    "info": "inspect",
    "init": "new",
    "latency": "benchmark",
    "list": "plugins list",
    "micro": "memory --micro",
    "netron": "report",
    "op-profile": "benchmark --op-profile",
    "profile": "benchmark --op-profile",
    "roof": "numba roof",
    "show": "inspect",
    "summary": "inspect",
    "version": "--version",
    "view": "report",
    "visualize": "report",
    "warm": "cache warm",
    "warmup": "cache warm",
}
"""Mapping from another word for an action to the command and option that do it here."""

_NO_QUANTIZING = "Delegraph does not quantize, it runs quantized models: their converter does that"
_NOT_HERE = {
    "quantise": _NO_QUANTIZING,
    "quantize": _NO_QUANTIZING,
    "validate": "'delegraph diff' compares outputs, 'delegraph inspect' reads the file",
}
"""Mapping from another word for an action to what there is in its place."""


def _no_command(name: str) -> str:
    """Return the error text for an unknown command, with the command that may be meant."""
    from delegraph.errors import close_names
    from delegraph.plugins import installed
    from delegraph.plugins.known_packages import package_for_command
    from delegraph.plugins.sources import pip_install

    plugins = installed()
    package = package_for_command(name)
    if package is not None:
        why = f"it comes with {package}: {pip_install(package)}"
        for each in plugins.plugins:
            if each.distribution == package:
                why = f"{each} is {each.state.value}: {each.error}; {each.remedy}"
        return f"no command {name!r}: {why}"
    if name.endswith(".tflite"):
        return f"no command {name!r}: 'delegraph run {name}' runs it, 'delegraph --help' has others"
    if name in _ELSEWHERE:
        return f"no command {name!r}: 'delegraph {_ELSEWHERE[name]}' does that"
    if name in _NOT_HERE:
        return f"no command {name!r}: {_NOT_HERE[name]}"
    known = [*COMMANDS, *plugins.commands()]
    longer = [each for each in known if each.startswith(name)]  # no close match, as it is short
    close = " or ".join(map(repr, longer[:3] or close_names(name, known)))
    hint = f" (did you mean {close}?)" if close else ""
    message = f"no command {name!r}{hint}; 'delegraph --help' lists the commands"
    if any(plugin.is_faulty for plugin in plugins.plugins):
        message += "; a plugin that is not usable may have it, see 'delegraph plugins doctor'"
    return message


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_version,
    help="Print the versions of Delegraph and of the plugins, and exit.",
)
@diagnosis_options
def delegraph() -> None:
    """Run TensorFlow Lite models, with delegates taking over parts of them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; errors are one line on standard error.

    With ``--json``, standard output is one JSON document, which has the key ``error`` after an
    error.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    if "_DELEGRAPH_COMPLETE" in os.environ:
        import_module("delegraph.cli.options.completion")  # for Bash
    if isinstance(sys.stdout, io.TextIOWrapper):  # labels in any script, whatever the locale
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return _main(words)
    except (BrokenPipeError, ReaderGone):
        _discard_output()
        return NOBODY_READS
    except OSError as error:
        click.echo(f"error: standard output cannot be written: {error.strerror}", err=True)
        _discard_output()
        return CHECK_FAILED


def _discard_output() -> None:
    """Discard output that is not yet written, about which Python would complain at exit."""
    with open(os.devnull, "w") as nothing:
        os.dup2(nothing.fileno(), 1)


def _main(words: list[str]) -> int:
    answer = JsonAnswer()
    outcome = _outcome(words, answer)
    failure = outcome if isinstance(outcome, Failure) else None
    if failure is not None:
        hint = "" if failure.is_expected else f" ({TRACEBACK} shows where; {FAULT})"
        if failure.place:
            hint = f"; at {failure.place}"
            hint += "" if TRACEBACK in words else f" ({TRACEBACK} shows more)"
        click.echo(f"error: {failure.message}{hint}", err=True)
        if JSON in words:
            answer["error"] = failure.to_json()
    if answer:
        write_json(answer)
    try:
        sys.stdout.flush()
    except OSError as error:
        if failure is None or isinstance(error, BrokenPipeError):
            raise
        _discard_output()  # one error is enough
    return outcome if isinstance(outcome, int) else outcome.exit_code


def _outcome(words: list[str], answer: JsonAnswer) -> int | Failure:
    """Run the command in *words*; return its exit code, or the error as a :class:`Failure`.

    Args:
        words: the arguments of the command line.
        answer: collector of the JSON document that the command prints.
    """
    try:
        with shown_log():
            result = delegraph.main(words, "delegraph", standalone_mode=False, obj=answer)
        return result if isinstance(result, int) else OK
    except click.exceptions.NoArgsIsHelpError as error:
        if JSON in words:
            return Failure("UsageError", "a subcommand is missing", USAGE)
        click.echo(error.format_message(), err=True)
        return USAGE
    except (BrokenPipeError, ReaderGone):
        raise
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last stop before the user
        if TRACEBACK in words and not isinstance(error, click.ClickException):
            for line in "".join(traceback.format_exception(error)).split("\n"):
                click.echo(printable(line), err=True)
        return Failure.of(error)
