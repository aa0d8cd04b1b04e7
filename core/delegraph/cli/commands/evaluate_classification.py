"""``delegraph evaluate classification``: accuracy of a classifier of pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.answers.printing import heading, print_paragraph, print_table
from delegraph.cli.commands.evaluation import (
    Evaluation,
    EvaluationCommand,
    change,
    change_interval,
    evaluation_options,
    images_option,
    num_images_option,
    print_preprocessing,
)
from delegraph.cli.options.kinds import file_option
from delegraph.cli.options.output_files import output_option
from delegraph.cli.options.preprocessing import preprocessing_options

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.tools.evaluation.classification_result import ChangedAnswer, Classification
    from delegraph.tools.evaluation.preprocessing import Preprocessing
    from delegraph.tools.progress import Progress


@click.command("classification", cls=EvaluationCommand)
@evaluation_options
@images_option("Folder of the pictures, in the order of their names.")
@file_option("--truth", "Right classes, one a line, or lines PICTURE,CLASS.", required=True)
@file_option("--labels", "Names of the classes, one a line.  [default: the metadata's]")
@file_option("--denylist", "Numbers of pictures to leave out, from 1.")
@num_images_option
@output_option("--csv", "FILE.csv", "Write each set-up's answer for each picture.", ".csv")
@preprocessing_options
def command(
    evaluation: Evaluation,
    images: str,
    truth: str,
    labels: str | None,
    denylist: str | None,
    num_images: int,
    csv: str | None,
    preprocessing: Preprocessing,
) -> None:
    """Evaluate a classifier of pictures.

    Prints the top-1 to top-10 accuracy of every set-up. With --against, it also prints each
    set-up's loss against the first one, with an interval (exact McNemar test), and the pictures
    with another answer.
    """
    from delegraph.tools.evaluation.classification import evaluate_classification
    from delegraph.tools.evaluation.labelled_pictures import labelled_pictures, read_words

    pictures = labelled_pictures(images, truth, denylist, num_images)

    def evaluate(progress: Progress) -> Classification:
        result = evaluate_classification(
            evaluation.setups,
            pictures,
            None if labels is None else read_words(labels),
            preprocessing,
            journal=evaluation.journal,
            warmup_runs=evaluation.warmup_runs,
            progress=progress,
        )
        if csv is not None:
            result.save_csv(csv)
        return result

    evaluation.finish(evaluate, _print_classification)


_TOPS = (1, 2, 3, 5, 10)
_CHANGED_SHOWN = 10
_MEANINGS = (
    "lost: pictures that only set-up 1 has right; gained: that only this one has right; "
    "p: McNemar's exact test"
)


def _print_classification(out: Console, result: Classification) -> None:
    count = len(result.answers.setups)
    print_preprocessing(out, result.preprocessing)
    heading(out, "Accuracy")
    columns: tuple[str, ...] = ("", *(f"top-{top}" for top in _TOPS))
    rows: list[tuple[Any, ...]] = [
        (position + 1, *(f"{100 * result.accuracy(position, top):.2f} %" for top in _TOPS))
        for position in range(count)
    ]
    print_table(out, columns, rows, right=columns[1:], names=())
    if count > 1:
        heading(out, "Change of top-1 from set-up 1")
        columns = ("", "change", "95 % interval", "p", "lost", "gained", "changed")
        rows = [_change(result, position) for position in range(1, count)]
        print_table(out, columns, rows, right=columns[2:], names=())
        print_paragraph(out, _MEANINGS)
        for position in range(1, count):
            _print_changed(out, position, result.changed(position))


def _print_changed(out: Console, position: int, changed: Sequence[ChangedAnswer]) -> None:
    if not changed:
        return
    heading(out, f"Changed answers of set-up {position + 1}")
    rows = [(c.key, c.truth, c.first.word, c.other.word) for c in changed[:_CHANGED_SHOWN]]
    columns = ("picture", "truth", "set-up 1", f"set-up {position + 1}")
    print_table(out, columns, rows, names=columns)
    if len(changed) > _CHANGED_SHOWN:
        out.print(f"  and {len(changed) - _CHANGED_SHOWN} more, which --json and --csv have")


def _change(result: Classification, position: int) -> tuple[Any, ...]:
    drop = result.drop(position)
    return (
        position + 1,
        change(100 * drop.drop, "{:.2f} %"),
        change_interval(drop.interval, "{:+.2%}").replace("%", " %"),
        f"{drop.p_value:.3g}",
        drop.lost,
        drop.gained,
        len(result.changed(position)),
    )
