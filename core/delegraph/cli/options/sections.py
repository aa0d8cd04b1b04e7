"""Help of a command: its options under headings, one line each, with their defaults."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from types import MethodType

import click

from delegraph.cli.options.output_files import require_other_files

SECTIONS = {
    "Inputs": "--images --truth --ids --num-images --denylist --input --input-shape --input-column "
    "--signature --distribution --input-range --seed --sample-rate --metric",
    "Output": "--output --json --save --draw --labels --top --threshold --output-column --real "
    "--resume --restart --on-error --csv --lock --check --plot --html --write-offline "
    "--result-json --name",
    "Preparing pictures": "--preset --crop --crop-fraction --resize --mean --std --channels "
    "--integers --upright --layout",
    "Rows and processes": "--batching --max-batch --processes --isolate-rows --row-timeout "
    "--max-restarts --replicas --max-batch-size --max-latency --max-queue --ray-address",
    "Delegates": "--delegate --delegate-file --no-default-delegates --rules --require "
    "--partition-policy --isolate --timeout --on-failure --validate",
    "Runtime": "--runtime --threads --numerics --cpu",
    "Runs": "--runs --repeat --min-seconds --max-seconds --warmup --warmup-runs --warmup-seconds "
    "--delay --frequency --dry-run",
    "Comparing": "--against --reference --tolerance --fail-above --blocks --seconds --same-within "
    "--diff --diff-runs --beside --compare-with",
    "Layers and causes": "--layers --inner --sort --bisect --probe-time-limit",
    "Profiles": "--op-profile --op-profile-csv --trace --speedscope --node-data",
    "Addresses": "--host --http-port --grpc-port --unix-socket --tls-cert --tls-key --token-file",
    "Limits for clients": "--max-body-size --max-decompressed-size --max-connections "
    "--max-json-values --max-json-depth --header-timeout --body-timeout --idle-timeout",
    "Limits": "--time-limit --memory-limit --table-limit --depth-limit --weights-dir",
    "Messages": "--verbose --log-level --traceback --help",
}
"""Headings in the order of the help, each with its options; other options come first."""

_LONGEST_SUMMARY = 200
"""Number of characters that no summary exceeds; click would cut a longer summary."""

SHORT = 10
"""Largest number of options that are shown without headings."""

_UNITS = {"integer": "N", "integer range": "N", "float": "NUMBER", "float range": "NUMBER"}


class SectionedCommand(click.Command):
    """Command whose help shows its options under the headings of :data:`SECTIONS`.

    A file to write must not be one that the command reads.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and check that no file they name is overwritten."""
        left = super().parse_args(ctx, args)
        if not ctx.resilient_parsing:
            require_other_files(ctx)
        return left

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one line for each option: names, meaning, choices and default."""
        options = [
            each
            for each in self.get_params(ctx)
            if isinstance(each, click.Option) and not each.hidden
        ]
        names = {each: _names(each, ctx) for each in options}
        widest = max(20, (formatter.width + 2) // 3)
        column = max((len(name) for name in names.values() if len(name) <= widest), default=0)
        for heading, shown in _by_heading(options):
            with formatter.section(heading):
                rows = [(names[each].ljust(column), _meaning(each, ctx)) for each in shown]
                formatter.write_dl(rows, col_max=column)


class SummarizedGroup(click.Group):
    """Command group whose help wraps the summaries of its commands instead of cutting them."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the name and the summary of each command."""
        write_commands(self, ctx, formatter, "Commands", self.list_commands(ctx))


def write_commands(
    group: click.Group,
    ctx: click.Context,
    formatter: click.HelpFormatter,
    heading: str,
    names: Iterable[str],
) -> None:
    """Write a heading, and below it the name and the summary of each command."""
    found = [(name, group.get_command(ctx, name)) for name in names]
    column = max(map(len, group.list_commands(ctx)), default=0)
    rows = [
        (name.ljust(column), command.get_short_help_str(_LONGEST_SUMMARY))
        for name, command in found
        if command is not None and not command.hidden
    ]
    with formatter.section(heading):
        formatter.write_dl(rows)


def summarized(command: click.Command) -> click.Command:
    """Return a plugin's command; the help of groups in it is that of :class:`SummarizedGroup`."""
    if type(command) is click.Group:
        shown = MethodType(SummarizedGroup.format_commands, command)
        command.format_commands = shown  # type: ignore[method-assign]  # of this object alone
        for each in command.commands.values():
            summarized(each)
    return command


def _by_heading(options: list[click.Option]) -> Iterator[tuple[str, list[click.Option]]]:
    """Yield each heading with its options, in the order of :data:`SECTIONS`."""
    headings = {name: key for key, names in SECTIONS.items() for name in names.split()}
    if len(options) <= SHORT:
        headings = {}
    for heading in ("Options", *SECTIONS):
        shown = [each for each in options if headings.get(each.opts[-1], "Options") == heading]
        if shown:
            yield heading, shown


def _names(option: click.Option, ctx: click.Context) -> str:
    """Return the names of an option, with the word for its value.

    >>> _names(click.Option(["-n", "--number"], type=int), click.Context(click.Command("run")))
    '-n, --number N'
    """
    names = " / ".join(", ".join(each) for each in (option.opts, option.secondary_opts) if each)
    if option.is_flag or option.count:
        return names
    return f"{names} {_value(option, ctx)}"


def _value(option: click.Option, ctx: click.Context) -> str:
    if option.metavar is not None:
        return option.metavar
    if isinstance(option.type, click.Choice):
        only_one = len(option.type.choices) == 1
        return str(option.type.choices[0]) if only_one else "WORD"
    return _UNITS.get(option.type.name, option.make_metavar(ctx))


def _meaning(option: click.Option, ctx: click.Context) -> str:
    """Return the help text of an option, with its choices and default.

    >>> words = click.Choice(["auto", "rows"])
    >>> option = click.Option(["--by"], type=words, default="auto", show_default=True, help="How.")
    >>> _meaning(option, click.Context(click.Command("run")))
    'How.  [default: auto; or rows]'
    """
    default = option.get_help_extra(ctx).get("default")
    words = [] if default is None else [f"default: {default.strip('()')}"]
    if isinstance(option.type, click.Choice) and option.metavar is None:
        named = re.findall(r"\w+", "".join(words))
        others = [str(each) for each in option.type.choices if str(each) not in named]
        if len(option.type.choices) > 1:
            words.append(("or " if words else "") + ", ".join(others))
    if option.required:
        words.append("required")
    return (option.help or "") + (f"  [{'; '.join(words)}]" if words else "")
