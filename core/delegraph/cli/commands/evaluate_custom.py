"""``delegraph evaluate custom``: any task, judged by a user's metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from delegraph.cli.answers.printing import heading, print_paragraph, print_table
from delegraph.cli.commands.evaluation import (
    Evaluation,
    EvaluationCommand,
    evaluation_options,
    print_changes,
    setup_headings,
)
from delegraph.quantities import plural

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.tools.evaluation.custom import CustomEvaluation
    from delegraph.tools.evaluation.task import Row


@click.command("custom", cls=EvaluationCommand)
@evaluation_options
@click.argument("data", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--metric",
    required=True,
    metavar="PACKAGE:FUNCTION",
    help="Python function that judges each row.",
)
def command(evaluation: Evaluation, data: tuple[str, ...], metric: str) -> None:
    """Evaluate any model by a Python function.

    DATA are .npz files. The first axis of their arrays counts the rows. An array named like an
    input has its values. The metric gets the other arrays as labels.
    """
    from delegraph.tools.evaluation.custom import evaluate_metric

    evaluation.finish(
        lambda progress: evaluate_metric(
            evaluation.setups,
            metric,
            data,
            journal=evaluation.journal,
            warmup_runs=evaluation.warmup_runs,
            progress=progress,
        ),
        _print_figures,
    )


def _print_figures(out: Console, result: CustomEvaluation) -> None:
    heading(out, f"Figures of {result.metric}")
    columns = ("figure", *setup_headings(result.figures))
    rows = [
        (name, *(f"{figures.get(name, float('nan')):.6g}" for figures in result.figures))
        for name in result.figures[0]
    ]
    print_table(out, columns, rows, right=columns[1:], names=())
    for position, kept in enumerate(result.answers.rows, 1):
        for name, keys in _rows_without_number(result.answers.keys, kept).items():
            first = f"{name} of set-up {position} is NaN in {plural(len(keys), 'row')}"
            print_paragraph(out, f"{first}, the first is {keys[0]}")
    if result.drops:
        changes = (
            (position, name, drop.drop, drop.interval)
            for position, drops in enumerate(result.drops, 2)
            for name, drop in drops.items()
        )
        print_changes(out, "figure", changes)


def _rows_without_number(keys: Sequence[str], rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the names of the rows in which each figure of a metric is NaN."""
    found: dict[str, list[str]] = {}
    for key, kept in zip(keys, rows, strict=True):
        figures = kept["row"] if isinstance(kept["row"], Mapping) else {}
        for name, value in figures.items():
            if value != value:
                found.setdefault(name, []).append(key)
    return found
