"""Finds the problems of the installed plugins."""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import groupby

from delegraph.delegation.configuration import default_delegates
from delegraph.errors import ArgumentError, PluginError, PluginOptionError
from delegraph.json_records import JsonRecord
from delegraph.plugins.address import DelegateAddress, canonical_name
from delegraph.plugins.choice import PluginChoice
from delegraph.plugins.creation import make_delegate
from delegraph.plugins.options import describe_options, make_options
from delegraph.plugins.plugin import ALLOW_VARIABLE, DISABLE_VARIABLE, Plugin, one_line
from delegraph.plugins.plugin_set import Offer, PluginSet


class Level(Enum):
    """Severity of a finding, worst first.

    An error makes something unusable, a warning needs attention, a note suggests an improvement.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding(JsonRecord):
    """A problem of this machine or a plugin, with the command or change that helps.

    A plugin's fact that is no problem has an empty *remedy*.
    """

    level: Level
    subject: str
    text: str
    remedy: str


_UPGRADE = "upgrade the distribution with pip, or tell its authors"


def check_offers(plugins: PluginSet, builtin: Collection[str] = ()) -> tuple[Finding, ...]:
    """Return findings about plugins and their offers, without importing the offered objects.

    *builtin* are the names of Delegraph's own commands.
    """
    return (
        *_unusable(plugins),
        *_conflicts(plugins),
        *_shared_commands(plugins, builtin),
        *(finding for plugin in plugins.plugins for finding in _looks(plugin)),
        *(_misspelled(text) for text in plugins.misspelled_groups()),
        *unmatched(plugins),
    )


def check_loads(plugins: PluginSet, builtin: Collection[str] = ()) -> tuple[Finding, ...]:
    """Return findings about the offers, after importing every offered object.

    *builtin* are the names of Delegraph's own commands.
    """
    return (
        *(finding for offer in plugins.offers() for finding in _offer(offer)),
        *_custom_ops(plugins),
        *_commands(plugins, builtin),
    )


def errors_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings in the order of display: errors, warnings, notes."""
    severity = list(Level)
    return tuple(sorted(findings, key=lambda finding: severity.index(finding.level)))


def _unusable(plugins: PluginSet) -> Iterator[Finding]:
    for plugin in plugins.plugins:
        if plugin.is_faulty:
            text = f"{plugin.state.value}: {plugin.error}"
            yield Finding(Level.ERROR, str(plugin), text, plugin.remedy)


def _conflicts(plugins: PluginSet) -> Iterator[Finding]:
    for name, group in groupby(plugins.offers(), key=lambda offer: offer.spec.name):
        offers = list(group)
        if len(offers) > 1:
            who = ", ".join(str(offer.plugin) for offer in offers)
            choices = " or ".join(sorted({repr(offer.address) for offer in offers}))
            yield Finding(
                Level.WARNING, f"delegate {name!r}", f"provided by {who}", f"write {choices}"
            )
    for name, providers in plugins.custom_op_providers().items():
        if len(providers) > 1:
            who = ", ".join(map(str, providers))
            yield Finding(
                Level.WARNING,
                f"custom operator {name!r}",
                f"provided by {who}; the first is used",
                "leave the others out with DELEGRAPH_DISABLE_PLUGINS",
            )


def _offer(offer: Offer) -> Iterator[Finding]:
    """Import the factory of one delegate and check its options, without creating a delegate."""
    subject = f"delegate {offer.spec.name!r} of {offer.plugin}"
    trace = f"delegraph plugins info {offer.address} --claims --traceback"
    try:
        factory = offer.spec.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a plugin may raise anything, SystemExit too
        yield Finding(Level.ERROR, subject, f"load() failed: {one_line(error)}", trace)
        return
    if not callable(factory):
        text = f"load() returned a {type(factory).__name__}, expected something to call"
        yield Finding(Level.ERROR, subject, text, "return the delegate's class from load()")
    try:
        options = describe_options(offer.spec)
    except PluginError as error:
        yield Finding(Level.ERROR, subject, str(error), trace)
        return
    yield from _chosen_options(offer)
    yield from _advice(offer)
    for option in options:
        if not option.help:
            text = f"option {option.name!r} has no description"
            remedy = "field(default=..., metadata={'help': '...'})"
            yield Finding(Level.WARNING, subject, text, remedy)


def _chosen_options(offer: Offer) -> Iterator[Finding]:
    """Yield an error if the user made the delegate a default with options that it rejects."""
    named, source = default_delegates()
    for name in named or ():
        with contextlib.suppress(PluginOptionError):  # the list of plugins has its own check
            address = DelegateAddress.parse(name)
            if canonical_name(address.name) == canonical_name(offer.spec.name):
                try:
                    if offer.spec.isolate != "none":  # its own code may crash this process
                        make_options(offer.spec, address.options or None)
                    else:
                        make_delegate(offer.spec, address.options or None, offer.plugin)
                except PluginError as error:
                    text = f"models cannot be loaded: {error}"
                    yield Finding(Level.ERROR, source, text, f"correct {name!r} in that list")


def _advice(offer: Offer) -> Iterator[Finding]:
    """Yield a delegate's own reports about its speed on this machine; facts have no remedy."""
    if offer.spec.advice is None:
        return
    subject = f"delegate {offer.address}"
    try:
        for text, remedy in offer.spec.advice():
            level = Level.WARNING if remedy else Level.NOTE
            yield Finding(level, subject, _words(text), _words(remedy))
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        remedy = "return a list of pairs of texts from advice()"
        yield Finding(Level.ERROR, subject, f"advice() failed: {one_line(error)}", remedy)


def _words(text: object) -> str:
    """Return *text*, which comes from a plugin, on one line."""
    return " ".join(str(text).split())


def _custom_ops(plugins: PluginSet) -> Iterator[Finding]:
    for name, spec in plugins.custom_ops().items():
        try:
            spec.load()
        except PluginError as error:
            yield _unloadable(f"custom operator {name!r}", error)


def _commands(plugins: PluginSet, builtin: Collection[str]) -> Iterator[Finding]:
    for name, providers in plugins.commands().items():
        if name in builtin or len(providers) > 1:
            continue  # a command that never runs
        try:
            plugins.load_command(name)
        except PluginError as error:
            yield _unloadable(f"command {name!r}", error)


def _unloadable(subject: str, error: PluginError) -> Finding:
    """Return the finding that *subject*, named once, could not be loaded.

    The remedy is to correct an environment variable if the cause of *error* names one.
    """
    cause = error.__cause__
    named = re.search(r"\bDELEGRAPH_\w+", str(cause)) if isinstance(cause, ArgumentError) else None
    remedy = f"correct or unset {named[0]}" if named else _UPGRADE
    return Finding(Level.ERROR, subject, str(error).removeprefix(f"{subject} "), remedy)


def _shared_commands(plugins: PluginSet, builtin: Collection[str]) -> Iterator[Finding]:
    for name, providers in plugins.commands().items():
        subject = f"command {name!r}"
        who = ", ".join(str(plugin) for plugin, _ in providers)
        if name in builtin:
            text = f"provided by {who}; Delegraph's own of that name runs"
            yield Finding(Level.WARNING, subject, text, "give the plugin's command another name")
        elif len(providers) > 1:
            remedy = "leave the others out with DELEGRAPH_DISABLE_PLUGINS"
            yield Finding(Level.ERROR, subject, f"provided by {who}; none of them runs", remedy)


def _looks(plugin: Plugin) -> Iterator[Finding]:
    if plugin.missing_hook:
        text = "offers no delegates, custom operators or commands"
        yield Finding(Level.WARNING, str(plugin), text, plugin.missing_hook)
    for warning in plugin.warnings:
        yield Finding(Level.WARNING, str(plugin), f"warns when imported: {warning}", _UPGRADE)


def _misspelled(text: str) -> Finding:
    what, _, remedy = text.partition(": ")
    return Finding(Level.WARNING, "entry points", what, remedy)


def unmatched(plugins: PluginSet) -> Iterator[Finding]:
    """Yield names in the allow and disable lists that match no installed plugin."""
    known: frozenset[str] = frozenset()
    for plugin in plugins.plugins:
        known |= PluginChoice.names_of(plugin.name, plugin.distribution)
    choice = plugins.choice
    for source, names in (
        (choice.allow_source, choice.allow or ()),
        (choice.disable_source, choice.disable),
    ):
        for name in sorted(names):
            if not PluginChoice.canonical((name,)) & known:
                near = difflib.get_close_matches(name, sorted(known), n=1)
                remedy = _corrected(source, set(names) - {name}, near)
                text = f"names {name!r}, which is not installed"
                yield Finding(Level.WARNING, source, text, remedy)


def _corrected(source: str, others: set[str], near: Sequence[str]) -> str:
    """Return advice on a list that names an unknown plugin, beside *others*.

    *source* is the environment variable with the list, or another place. *near* has the installed
    plugin of a similar name, if there is one.
    """
    catalogue = "'delegraph plugins list' shows what there is"
    if source not in (ALLOW_VARIABLE, DISABLE_VARIABLE):
        hint = f"write {near[0]!r}" if near else "install it"
        return f"{hint}, or take it off; {catalogue}"
    names = ",".join(sorted(others | set(near)))
    if near:
        return f"{source}={names} has the name that was probably meant; {catalogue}"
    if not names and source == ALLOW_VARIABLE:
        return f"install it; without {source} all plugins are allowed; {catalogue}"
    return f"install it, or leave it out: {source}={names}; {catalogue}"
