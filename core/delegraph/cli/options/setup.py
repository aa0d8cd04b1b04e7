"""MODEL and the set-up options, for commands and for ``--against``."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, cast, get_args

import click
from click.core import ParameterSource

from delegraph.cli.options.arguments import (
    delegate_option,
    failure_options,
    isolation_options,
    limit_options,
    model_argument,
    placement_options,
    runtime_option,
)
from delegraph.cli.options.kinds import (
    Command,
    choice_option,
    group,
    number_option,
)
from delegraph.cli.options.output_files import require_other_model
from delegraph.errors import printable

if TYPE_CHECKING:
    from delegraph.tools.setup import Setup


def setup_options(command: Command) -> Command:
    """Add MODEL and the set-up options; the command gets a ``Setup`` as *setup*."""
    return _all_options(_taking_setup(command))


def placed_setup_options(command: Command) -> Command:
    """Add the options of :func:`setup_options` that matter when no node is computed.

    The command gets *require* separately from *setup*, because it shows a placement before it
    rejects the placement.
    """
    return _placing_options(_taking_setup(command, but={"require"}))


def _taking_setup(command: Command, but: Set[str] = frozenset()) -> Command:
    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> Any:
        return command(*arguments, setup=_taken_setup(options, but), **options)

    return cast(Command, run)


def against_option(purpose: str) -> Callable[[Command], Command]:
    """Return a decorator that adds the repeatable ``--against``; the command gets its texts.

    *purpose* begins the option's help: it says what the other set-ups are for.
    """
    return click.option(
        "--against",
        multiple=True,
        metavar="SPEC",
        help=f"{purpose}, as '--runtime litert'; repeatable.",
    )


def setups_against(setup: Setup, against: Sequence[str]) -> tuple[Setup, ...]:
    """Return the set-ups in the texts of ``--against``; see :func:`changed_setup`."""
    return tuple(changed_setup(setup, words, "--against") for words in against)


def changed_setup(setup: Setup, words: str, option: str) -> Setup:
    """Return *setup* changed by *words*: another MODEL, ``-d``, ``--threads`` and so on.

    *words* are options as on the command line; their delegates replace those of *setup*. *option*
    is the name of the option with the value *words*, for messages.

    Raises:
        UsageError: *words* contain an unknown option.
        PluginError: no installed plugin provides one of the delegates.
    """
    # Messages show this name in place of a command's name.
    command = click.Command(f"{option} {words!r}", callback=lambda **_: None, add_help_option=False)
    _all_options(command)
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            parameter.required = False
    try:
        context = command.make_context(option, shlex.split(words))
    except click.UsageError as error:
        _require_of_setup(error, words, option)
        text = error.format_message().rstrip(".") + _advice(words, option)
        raise click.UsageError(f"{option} {words!r}: {text}") from error
    except ValueError as error:  # a quotation mark is not closed
        raise click.UsageError(f"{option} {words!r}: {error}") from error
    given = {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    names_delegates = "delegates" in given or "delegate_files" in given
    if names_delegates:
        files = given.get("delegate_files", ())
        given |= {"delegates": given.get("delegates") or None, "delegate_files": files}
    changed = replace(setup, **given)
    require_other_model(changed.model)
    _require_known_to_runtime(changed)
    changed.require_installed_delegates()
    if changed.runtime != setup.runtime and not names_delegates:
        _note_inherited(changed, option)
    return changed


def _require_of_setup(error: click.UsageError, words: str, option: str) -> None:
    """Raise another error if *error* is about an option that all set-ups have in common.

    *option*, such as ``--against``, has the value *words*.

    Raises:
        UsageError: the command has the option, and set-ups do not.
    """
    context = click.get_current_context(silent=True)
    if context is None or not isinstance(error, click.NoSuchOption):
        return
    name = error.option_name
    if any(name in each.opts for each in context.command.params):
        raise click.UsageError(
            f"{option} {words!r}: {name} is for all set-ups, give it outside of {option}"
        ) from error


def _note_inherited(changed: Setup, option: str) -> None:
    """Print which delegates a set-up of another runtime has from the command, if it has some."""
    words = [f"-d {name}" for name in changed.delegates or ()]
    words += [f"--delegate-file {file}" for file in changed.delegate_files]
    if words not in ([], ["-d default"]):
        host = "Delegraph" if changed.runtime == "delegraph" else "LiteRT"
        advice = f"add -d default for {host}'s own delegates"
        text = f"note: {option} inherits {' '.join(words)}; {advice}"
        click.echo(printable(text), err=True)


def _advice(words: str, option: str) -> str:
    """Advice on *words* if they begin with neither an option nor a model; otherwise empty."""
    from delegraph.plugins import installed
    from delegraph.plugins.specs import DELEGATE_WORDS
    from delegraph.tools.setup import Runtime

    first = shlex.split(words)[:1]
    names = {offer.spec.name for offer in installed().offers()} | {*DELEGATE_WORDS}
    if first and first[0] in get_args(Runtime):
        return f'; a runtime needs --runtime: {option} "--runtime {words}"'
    if not first or first[0].startswith("-") or first[0].endswith(".tflite"):
        return ""
    if first[0].partition(":")[0] not in names:
        return f'; options go there as on the command line: {option} "--runtime litert"'
    return f'; a delegate needs -d: {option} "-d {words}"'


_placing_options = group(
    model_argument,
    delegate_option,
    placement_options,
    isolation_options,
    limit_options,
    runtime_option,
)

_all_options = group(
    _placing_options,
    failure_options,
    number_option("--threads", "Number of threads.  [default: 1; delegates choose]"),
    choice_option(
        "--numerics",
        ["builtin", "reference"],
        "Rounding of official kernels.",
        default="builtin",
    ),
    click.option(
        "--no-default-delegates",
        "use_default_delegates",
        flag_value=False,
        default=True,
        help="Apply only named delegates, and no XNNPACK in LiteRT.",
    ),
)


def _taken_setup(options: dict[str, Any], but: Set[str]) -> Setup:
    """Remove a set-up's options, except those in *but*, from *options*; return the set-up."""
    from delegraph.tools.setup import Setup

    names = {spec.name for spec in fields(Setup)} & options.keys() - but
    given: Mapping[str, Any] = {name: options.pop(name) for name in names}
    setup = Setup(**{**given, "delegates": given["delegates"] or None})
    _require_known_to_runtime(setup)
    return setup


def _require_known_to_runtime(setup: Setup) -> None:
    if setup.runtime != "delegraph":
        for name in setup.own_runtime_only():
            raise click.UsageError(f"--{name.replace('_', '-')} needs --runtime delegraph")
