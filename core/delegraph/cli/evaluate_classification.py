"""``delegraph evaluate classification``: which class pictures are of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.evaluation import Evaluation, evaluation_options
from delegraph.cli.printing import heading, print_table

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.tools.evaluation.classification import Classification

_FILE = click.Path(exists=True, dir_okay=False)


@click.command("classification")
@evaluation_options
@click.option(
    "--images",
    required=True,
    type=click.Path(exists=True, file_okay=False),
    help="Folder of the pictures: all its files, in the order of their names' bytes.",
)
@click.option(
    "--truth", required=True, type=_FILE, help="The right word of each picture, one a line."
)
@click.option(
    "--labels", required=True, type=_FILE, help="Words of the model's classes, one a line."
)
@click.option("--denylist", type=_FILE, help="Numbers of pictures to leave out, the first being 1.")
@click.option(
    "--num-images",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="How many of the pictures to use, in their order; 0 for all.",
)
@click.option("--preset", default="tflite", show_default=True, help="How pictures become inputs.")
def command(
    evaluation: Evaluation,
    images: str,
    truth: str,
    labels: str,
    denylist: str | None,
    num_images: int,
    preset: str,
) -> None:
    """Evaluate a classifier of pictures."""
    from delegraph.tools.evaluation.classification import evaluate_classification
    from delegraph.tools.evaluation.labelled_pictures import labelled_pictures, read_words

    pictures = labelled_pictures(images, truth, denylist, num_images)
    evaluation.finish(
        lambda progress: evaluate_classification(
            evaluation.setups,
            pictures,
            read_words(labels),
            preset,
            journal=evaluation.journal,
            warmup_runs=evaluation.warmup_runs,
            progress=progress,
        ),
        _print_classification,
    )


_TOPS = (1, 2, 3, 5, 10)


def _print_classification(out: Console, result: Classification) -> None:
    count = len(result.answers.setups)
    heading(out, "Accuracy")
    columns: tuple[str, ...] = ("", *(f"top-{top}" for top in _TOPS))
    rows: list[tuple[Any, ...]] = [
        (position + 1, *(f"{100 * result.accuracy(position, top):.2f} %" for top in _TOPS))
        for position in range(count)
    ]
    print_table(out, columns, rows, right=columns[1:], names=())
    if count > 1:
        heading(out, "Drop of top-1 against set-up 1")
        columns = ("", "drop", "95 % interval", "p", "only 1 right", "only it right", "changed")
        rows = [_drop(result, position) for position in range(1, count)]
        print_table(out, columns, rows, right=columns[1:], names=())


def _drop(result: Classification, position: int) -> tuple[Any, ...]:
    drop = result.drop(position)
    low, high = 100 * drop.interval.low, 100 * drop.interval.high
    return (
        position + 1,
        f"{100 * drop.drop:+.2f} %",
        f"{low:+.2f} to {high:+.2f}",
        f"{drop.p_value:.3g}",
        drop.lost,
        drop.gained,
        len(result.changed(position)),
    )
