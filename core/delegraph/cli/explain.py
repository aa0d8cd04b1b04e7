"""``delegraph explain``: which nodes a delegate takes, and why the rest stay behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from delegraph.cli.options import (
    delegate_option,
    json_option,
    model_argument,
    requested_delegates,
    traceback_option,
)
from delegraph.cli.printing import console, heading, print_json, print_table, progress

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.tools.explanation import Explanation

OWN = "Delegraph"  # runs what no delegate takes


@click.command("explain")
@model_argument
@delegate_option
@json_option
@traceback_option
def command(
    model: str, delegates: Sequence[str], delegate_files: Sequence[str], as_json: bool
) -> None:
    """Show which nodes delegates take, and why not others.

    Nothing is computed: the delegates are only applied.
    """
    if not delegates and not delegate_files:
        raise click.UsageError("give at least one --delegate", click.get_current_context())
    from delegraph import Interpreter
    from delegraph.tools.explanation import explain

    with (
        progress(f"applying {', '.join((*delegates, *delegate_files))}"),
        Interpreter(
            model_path=model, delegates=requested_delegates(delegates, delegate_files)
        ) as interpreter,
    ):
        explanation, numerics = explain(interpreter), interpreter.numerics
    if as_json:
        print_json({"model": model, "numerics": numerics, **explanation.to_json()})
    else:
        _print(console(), model, explanation)


def _print(out: Console, model: str, explanation: Explanation) -> None:
    out.print(model, style="bold")
    out.print(f"  {explanation.placement}")
    print_stages(out, explanation)
    if explanation.refusals:
        print_refusals(out, explanation)


def print_stages(out: Console, explanation: Explanation) -> None:
    """Print who runs what, in execution order."""
    from delegraph.delegation.placement import index_ranges
    from delegraph.tools.explanation import operator_counts

    several = len({stage.subgraph for stage in explanation.stages}) > 1
    heading(out, "In execution order")
    rows = [
        (
            *((stage.subgraph,) if several else ()),
            "-" if stage.partition is None else stage.partition,
            stage.delegate or OWN,
            len(stage.nodes),
            index_ranges(stage.nodes),
            operator_counts(stage.ops),
        )
        for stage in explanation.stages
    ]
    columns = ("partition", "runs on", "count", "nodes", "operators")
    print_table(
        out,
        ("subgraph", *columns) if several else columns,
        rows,
        right=("subgraph", "partition", "count"),
    )


def print_refusals(out: Console, explanation: Explanation) -> None:
    """Print why delegates left nodes."""
    from delegraph.delegation.placement import index_ranges

    several = len({node.subgraph for node in explanation.placement.nodes}) > 1
    heading(out, "Left by a delegate")
    rows = [
        (
            refusal.delegate,
            *((refusal.subgraph,) if several else ()),
            refusal.op,
            len(refusal.nodes),
            index_ranges(refusal.nodes),
            refusal.reason,
            refusal.runs_on or OWN,
        )
        for refusal in explanation.refusals
    ]
    first, *others = ("delegate", "operator", "count", "nodes", "reason", "runs on")
    columns = (first, "subgraph", *others) if several else (first, *others)
    print_table(out, columns, rows, right=("subgraph", "count"))
