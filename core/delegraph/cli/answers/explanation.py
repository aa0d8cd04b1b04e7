"""Prints placements: stages in execution order, rejections with their cost, and hints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

import click

from delegraph.cli.answers.printing import (
    heading,
    print_omitted,
    print_paragraph,
    print_table,
    print_title,
    signature_text,
    size,
)
from delegraph.cli.answers.table_layout import Column, kept_columns
from delegraph.cli.answers.unknown_shapes import LEAST_MACS, macs_amount, macs_share
from delegraph.cli.failure import with_options
from delegraph.delegation.rules import shortened_node_numbers
from delegraph.errors import printable
from delegraph.quantities import plural
from delegraph.tools.explanation import operator_counts
from delegraph.tools.refusals import runner_of

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.delegation.placement import PartitionPlacement, Placement
    from delegraph.tools.explanation import Explanation, Stage
    from delegraph.tools.hints import Hint
    from delegraph.tools.refusals import Refusal

_MOST_RANGES = 8
_MOST_OPERATORS = 8
_MOST_HINTS = 3
NO_HINT = "no small addition to what a delegate claims would give it 1 % more of the arithmetic"


def print_explanation(
    out: Console, model: str, explanation: Explanation, advice: Sequence[str], fault: str = ""
) -> None:
    """Print the placement of a model.

    Args:
        out: the console to print to.
        model: path of the model.
        explanation: the placement.
        advice: sentences that tell the user what to do.
        fault: the error of allocating tensors; empty if there is none.
    """
    placement = explanation.placement
    print_title(out, model)
    if explanation.signature is not None:
        others = [each.name for each in explanation.signatures]
        print_paragraph(out, signature_text(explanation.signature, others))
    if fault:
        print_paragraph(out, f"cannot run, allocation fails: {' '.join(fault.split())}")
    print_paragraph(out, str(placement))
    if crossings := _crossings(placement):
        print_paragraph(out, crossings)
    print_stages(out, explanation)
    print_refusals(out, explanation)
    if advice:
        heading(out, "What would help")
        for sentence in advice:
            print_paragraph(out, sentence)
    if placement.incidents:
        heading(out, "Incidents")
        for incident in placement.incidents:
            print_paragraph(out, str(incident))
    if explanation.signature is None and len(explanation.signatures) > 1:
        _print_signatures(out, explanation)


def _print_signatures(out: Console, explanation: Explanation) -> None:
    """Print the placement of each signature in one line."""
    heading(out, "Signatures")
    rows = [(each.name, each.subgraph, each.summary) for each in explanation.signatures]
    print_table(out, ("name", "subgraph", "placement"), rows, right=("subgraph",))
    out.print()
    out.print("--signature NAME shows one of them alone")


def _crossings(placement: Placement) -> str:
    """Return a sentence about the bytes that cross partition boundaries; empty if none does."""
    sizes = [crossing.bytes for crossing in placement.shown_crossings]
    if not sizes:
        return ""
    known, unknown = size(sum(count or 0 for count in sizes)), sizes.count(None)
    verb = "crosses" if len(sizes) == 1 else "cross"
    named = "" if len(sizes) == len(placement.crossings) else "named "
    sentence = f"{plural(len(sizes), 'tensor')} {verb} to or from a {named}delegate"
    if unknown:
        return f"{sentence}, {known} and {unknown} of a size known only while invoking"
    several = len({node.subgraph for node in placement.nodes}) > 1
    return f"{sentence}, {known} {'if each subgraph runs once' if several else 'an invoke'}"


def print_stages(out: Console, explanation: Explanation) -> None:
    """Print the placement in execution order, with the boundary bytes of partitions.

    The default delegate's partitions are shown separately only if no delegate was requested.
    """
    several = len({stage.subgraph for stage in explanation.stages}) > 1
    placement = explanation.placement
    columns = ["subgraph", "partition", "runs on", "count", "nodes", "in", "out", "operators"]
    rows = []
    shown = _by_runner(placement, explanation.stages)
    for (subgraph, partition, runner), run in groupby(
        shown, key=lambda pair: (pair[1].subgraph, _partition(placement, pair[1]), pair[0])
    ):
        stages = [stage for _, stage in run]
        nodes = [node for stage in stages for node in stage.nodes]
        ops = [op for stage in stages for op in stage.ops]
        number = "-" if partition is None else partition.index
        sizes = _boundary(partition)
        rows.append((subgraph, number, runner, len(nodes), _nodes(nodes), *sizes, _operators(ops)))
    left_out = set() if several else {"subgraph"}
    if all(row[1] == "-" for row in rows):
        left_out |= {"partition", "in", "out"}
    kept = [i for i, column in enumerate(columns) if column not in left_out]
    heading(out, "In execution order")
    omitted = print_table(
        out,
        [columns[i] for i in kept],
        [[row[i] for i in kept] for row in rows],
        right=("subgraph", "partition", "count", "in", "out"),
        optional=(("in", "out"),),
    )
    print_omitted(out, omitted)


def _partition(placement: Placement, stage: Stage) -> PartitionPlacement | None:
    """Return the partition of *stage*; None for kernels, and for the default delegate."""
    found = None if stage.partition is None else placement.partitions[stage.partition]
    is_rest = found is not None and found.is_by_default and placement.requested_delegates
    return None if is_rest else found


def _by_runner(placement: Placement, stages: Iterable[Stage]) -> Iterator[tuple[str, Stage]]:
    """Yield each stage with the name of its runner; a stage with several runners is divided.

    A runner is a delegate, a plugin or the host.

    Args:
        placement: delegate or kernel of each node.
        stages: consecutive nodes, all of one delegate or of the host.
    """
    runners = {(n.subgraph, n.index): runner_of(n, placement.host) for n in placement.nodes}
    for stage in stages:
        if stage.delegate is not None:
            yield stage.delegate, stage
            continue
        pairs = zip(stage.nodes, stage.ops, strict=True)
        for runner, run in groupby(pairs, key=lambda pair: runners[stage.subgraph, pair[0]]):
            nodes, ops = zip(*run, strict=True)
            yield runner, replace(stage, nodes=nodes, ops=ops)


def _boundary(partition: PartitionPlacement | None) -> tuple[str, str]:
    """Return the sizes of a partition's inputs and outputs as text, without constants."""
    if partition is None:
        return "-", "-"
    sizes = (partition.input_bytes, partition.output_bytes)
    enters, leaves = ("?" if count is None else size(count) for count in sizes)
    return enters, leaves


def print_refusals(out: Console, explanation: Explanation) -> None:
    """Print the rejected nodes of each requested delegate, with the reasons.

    The default delegate's reasons are printed only if no delegate was requested. The tables of all
    delegates have the same columns.
    """
    placement = explanation.placement
    names = placement.requested_delegates or placement.delegates
    shown = [refusal for refusal in explanation.refusals if refusal.delegate in names]
    several = len({node.subgraph for node in placement.nodes}) > 1
    has_macs = any(r.share is not None or r.macs_are_least for r in shown)
    left_out = {"out"} if has_macs else {"share", "MACs"}
    left_out |= set() if several else {"subgraph"}
    found = [
        Column(name, cells, is_number=name in _NUMBERS, is_sentence=name == "reason")
        for name, cells in _refusal_cells(shown).items()
        if name not in left_out
    ]
    kept = [column.heading for column in kept_columns(found, out.width - 2, _OPTIONAL)]
    for delegate, refusals in groupby(shown, key=lambda refusal: refusal.delegate):
        heading(out, f"Left by {delegate}")
        cells = _refusal_cells(list(refusals))
        rows = zip(*(cells[name] for name in kept), strict=True)
        print_table(out, kept, rows, right=_NUMBERS)
    if {"MACs", "share"} & {*kept} and any(r.macs and r.macs_are_least for r in shown):
        print_paragraph(out, LEAST_MACS)
    print_omitted(out, [column.heading for column in found if column.heading not in kept])


_NUMBERS = ("subgraph", "count", "share", "MACs", "out")
_OPTIONAL = (("runs on",), ("MACs",), ("nodes",), ("share",), ("out",))
"""Groups of columns that narrow terminals lack, the least important first."""


def _refusal_cells(refusals: Sequence[Refusal]) -> dict[str, tuple[str, ...]]:
    """Return the cells of each column of a table of refusals."""
    return {
        "subgraph": tuple(str(refusal.subgraph) for refusal in refusals),
        "count": tuple(str(len(refusal.nodes)) for refusal in refusals),
        "share": tuple(macs_share(r.share, r.macs_are_least) for r in refusals),
        "MACs": tuple(macs_amount(r.macs, r.macs_are_least) or "0" for r in refusals),
        "out": tuple(size(refusal.bytes) for refusal in refusals),
        "operators": tuple(_operators(refusal.ops) for refusal in refusals),
        "reason": tuple(printable(_reason(refusal)) for refusal in refusals),
        "nodes": tuple(_nodes(refusal.nodes) for refusal in refusals),
        "runs on": tuple(", ".join(refusal.runs_on) for refusal in refusals),
    }


def _reason(refusal: Refusal) -> str:
    return with_options(refusal.reason, click.get_current_context().command)


def _nodes(nodes: Iterable[int]) -> str:
    """Text of node indices; of many ranges, the first ones and the number of the other nodes."""
    return shortened_node_numbers(nodes, _MOST_RANGES)


def _operators(ops: Sequence[str]) -> str:
    """Text of operator names with counts; if there are many, the most frequent ones."""
    texts = operator_counts(ops).split(", ")
    if len(texts) <= _MOST_OPERATORS:
        return ", ".join(texts)
    kept = _MOST_OPERATORS - 1
    return f"{', '.join(texts[:kept])} and {len(texts) - kept} others"


def hints_in_words(hints: Sequence[Hint]) -> Iterator[str]:
    """Yield sentences with the best hints of each delegate."""
    for _, group in groupby(hints, key=lambda hint: hint.delegate):
        yield from map(str, list(group)[:_MOST_HINTS])
