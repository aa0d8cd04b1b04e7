"""Completion by the Tab key: names in the model, options of delegates, and files.

Nothing here raises an error: if the line is incomplete or the model unreadable, nothing is offered.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    split_arg_string,
)

from delegraph.cli.options.arguments import complete_delegate

if TYPE_CHECKING:
    from delegraph.graph.model import Model

Offer = Callable[[click.Context, str], Iterable[CompletionItem]]
"""Function that returns completions, given the words before the cursor and the word's beginning."""

_SEPARATORS = (":", "=")
"""Characters at which Bash splits words."""


def with_completion(command: click.Command) -> click.Command:
    """Return a command whose options and arguments complete names and files, by their kind."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            with_completion(each)
    for parameter in command.params:
        offer = _offer_of(parameter)
        if offer is not None:
            complete = partial(_offered, offer)
            parameter.shell_complete = complete  # type: ignore[method-assign]  # as click's callback
    return command


def _offered(offer: Offer, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    found: list[CompletionItem] = []
    with suppress(Exception):  # a model or a plugin may be broken; Tab shows no error
        for item in offer(ctx, incomplete):
            if item.type != "plain" or str(item.value).startswith(incomplete):
                found.append(item)  # noqa: PERF401 - what comes before an error is kept
    return found


def _offer_of(parameter: click.Parameter) -> Offer | None:
    for name in parameter.opts:
        if name in _OFFERS and not isinstance(parameter.type, click.Choice):
            return _OFFERS[name]
    metavar = parameter.metavar or ""
    if isinstance(parameter, click.Argument):
        metavar = parameter.human_readable_name
    if isinstance(parameter.type, click.types.StringParamType):
        if metavar.startswith(("FILE", "MODEL", "SOURCE")):
            return lambda ctx, incomplete: [CompletionItem(incomplete, type="file")]
        if metavar.startswith("DIR"):
            return lambda ctx, incomplete: [CompletionItem(incomplete, type="dir")]
    return None


def _delegates(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Yield installed delegates; after ``NAME:`` the delegate's options, or an option's values."""
    from delegraph.plugins.specs import DELEGATE_WORDS

    name, colon, given = incomplete.partition(":")
    if not colon and ctx.command.name == "compile":
        from delegraph.tools.compiling import compilable

        yield from (CompletionItem(address.partition(":")[2]) for address in compilable())
        return
    if not colon:
        yield from complete_delegate(ctx, ctx.command.params[0], incomplete)
        if any(parameter.name == "delegate_files" for parameter in ctx.command.params):
            yield from map(CompletionItem, DELEGATE_WORDS)  # commands that apply them
        return
    from delegraph.plugins import installed
    from delegraph.plugins.options import option_fields, option_kinds

    offer = installed().find(name)
    before, comma, last = given.rpartition(",")
    key, equals, _ = last.partition("=")
    start = f"{name}:{before}{comma}"
    if not equals:
        for field in option_fields(offer.spec):
            yield CompletionItem(f"{start}{field.name}=", help=field.metadata.get("help"))
    else:
        for value in _values(option_kinds(offer.spec).get(key)):
            yield CompletionItem(f"{start}{key}={value}")


def _values(kind: Any) -> list[str]:
    """Return all values of an option's type as users type them; empty if there are too many."""
    if kind is bool:
        return ["true", "false"]
    if get_origin(kind) is Literal:
        return [str(value) for value in get_args(kind)]
    return list(kind.__members__) if isinstance(kind, type) and issubclass(kind, Enum) else []


def _levels(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Yield values of the option ``cpu`` of delegates that compile, after those already given."""
    from delegraph.plugins import installed
    from delegraph.plugins.options import option_kinds
    from delegraph.tools.compiling import is_compilable

    given, comma, _ = incomplete.rpartition(",")
    named = {word.partition(":")[0] for word in ctx.params.get("delegates") or ()}
    found: dict[str, None] = {}
    for offer in installed().offers():
        if is_compilable(offer) and offer.spec.name in (named or {offer.spec.name}):
            found |= dict.fromkeys(_values(option_kinds(offer.spec).get("cpu")))
    for level in found:
        if level not in given.split(","):
            yield CompletionItem(f"{given}{comma}{level}")


def _planners(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    from delegraph.tools.memory_planners import PLANNERS

    yield from map(CompletionItem, ("all", *PLANNERS))


def _cached(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Yield the names of caches that have data."""
    from delegraph.delegation.cache_entries import cache_entries

    yield from map(CompletionItem, sorted({entry.namespace for entry in cache_entries()}))


def _tested(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Yield what can be tested: Python files, installed delegates, and ``core``."""
    if ":" not in incomplete:
        yield CompletionItem(incomplete, type="file")  # first: Bash forgets what came before
        if ctx.command.name == "test-operators":
            yield CompletionItem("core", help="Delegraph's own kernels")
    yield from _delegates(ctx, incomplete)


def _tested_operators(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Yield the operators with cases that the named delegate claims; all for the core."""
    from delegraph.runtime.delegates.requested_delegates import load_delegate
    from delegraph.testing.sweep.generator import sweep_operators

    # Before an option without its value, click leaves the arguments unread.
    given = [ctx.params.get(name) for name in ("delegate", "named", "file")] + ctx.args
    name = next((word for word in given if word is not None), "core")
    operators = set(sweep_operators())
    if name != "core":
        claims = load_delegate(name).capabilities().claims
        operators &= {operator for claim in claims for operator in claim.operators}
    yield from map(CompletionItem, sorted(operators))


def _signatures(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    for signature in _model(ctx).signatures:
        yield CompletionItem(signature.key)


def _inputs(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Yield ``NAME=`` for each input, and files."""
    yield CompletionItem(incomplete, type="file")  # first: Bash forgets what came before
    if "=" not in incomplete:
        graph = _model(ctx).subgraphs[0]
        yield from (CompletionItem(f"{graph.tensors[index].name}=") for index in graph.inputs)


def _input_names(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    return (item for item in _inputs(ctx, incomplete) if item.type == "plain")


def _outputs(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Yield ``NAME=`` for each output."""
    if "=" in incomplete:
        return
    graph = _model(ctx).subgraphs[0]
    yield from (CompletionItem(f"{graph.tensors[index].name}=") for index in graph.outputs)


def _operators(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Yield operator names, and node indices with the name of the node's output."""
    graph = _model(ctx).subgraphs[0]
    yield from map(CompletionItem, dict.fromkeys(o.name for o in graph.operators))
    for operator in graph.operators:
        made = next((graph.tensors[index].name for index in operator.outputs if index >= 0), "")
        yield CompletionItem(str(operator.index), help=f"{operator.name} {made}")


def _computed_tensors(ctx: click.Context, incomplete: str) -> Iterator[CompletionItem]:
    """Yield names of tensors that nodes compute, prefixed by the tensors already given."""
    given, comma, _ = incomplete.rpartition(",")
    graph = _model(ctx).subgraphs[0]
    for operator in graph.operators:
        for index in operator.outputs:
            if index >= 0:
                yield CompletionItem(f"{given}{comma}{graph.tensors[index].name}")


def _model(ctx: click.Context) -> Model:
    """Return the model that the command line names so far, for completions from its content."""
    from delegraph.graph import load_model

    # Before an option without its value, click leaves the arguments unread.
    given = [ctx.params.get("model"), *(ctx.params.get("models") or ()), *ctx.args]
    return load_model(next(path for path in given if path is not None))


_OFFERS: dict[str, Offer] = {
    "--delegate": _delegates,
    "--signature": _signatures,
    "--input": _inputs,
    "--input-shape": _input_names,
    "--input-range": _input_names,
    "--input-column": _input_names,
    "--output-column": _outputs,
    "--tolerance": _outputs,
    "--node": _operators,
    "--intermediate-tensors": _computed_tensors,
    "--operator": _tested_operators,
    "--planner": _planners,
    "delegate": _tested,
    "delegates": _tested,
    "caches": _cached,
    "--cpu": _levels,
}
"""Mapping from an option or an argument's name to its completions."""


class _JoinedWords(BashComplete):
    """Bash's completion in which words that Bash splits at ``:`` and ``=`` are joined again.

    No blank follows an item that ends with ``=``.
    """

    source_template = BashComplete.source_template.replace(
        "COMPREPLY+=($value)", 'COMPREPLY+=("$value"); [[ $value == *= ]] && compopt -o nospace'
    )

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the whole words before the present one, and the beginning of the present word."""
        position = int(os.environ["COMP_CWORD"])
        pieces = split_arg_string(os.environ["COMP_WORDS"])[: position + 1]
        if len(pieces) <= position:
            pieces.append("")
        words, cut = joined(pieces)
        option, equals, _ = words[-1].partition("=")
        own = len(option) + 1 if equals and option.startswith("-") else 0  # click removes it
        self._cut = max(cut - own, 0)
        return words[1:-1], words[-1]

    def format_completion(self, item: CompletionItem) -> str:
        """Return the text of *item*, without the beginning of the word that Bash keeps."""
        if item.type == "plain":
            item = CompletionItem(item.value[self._cut :], item.type, item.help)
        return super().format_completion(item)


def joined(pieces: list[str]) -> tuple[list[str], int]:
    """Return whole words joined from *pieces*, and the length of the last word before its piece.

    >>> joined(["run", "-d", "add_sub", ":", "min"])
    (['run', '-d', 'add_sub:min'], 8)
    """
    words: list[str] = []
    is_open = False
    cut = 0
    for piece in pieces:
        is_separator = piece != "" and all(c in _SEPARATORS for c in piece)
        if words and (is_open or is_separator):
            cut = len(words[-1]) + (len(piece) if is_separator else 0)
            words[-1] += piece
        else:
            words.append(piece)
            cut = 0
        is_open = is_separator
    return words, cut


add_completion_class(_JoinedWords, "bash")
