"""``delegraph evaluate detection``: precision of a detector of objects in pictures."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.answers.printing import heading, print_paragraph, print_table
from delegraph.cli.commands.evaluation import (
    Evaluation,
    EvaluationCommand,
    evaluation_options,
    images_option,
    num_images_option,
    print_changes,
    print_preprocessing,
    setup_headings,
)
from delegraph.cli.options.kinds import file_option, number_option, switch_option
from delegraph.cli.options.output_files import output_option
from delegraph.cli.options.preprocessing import whole_picture_options
from delegraph.quantities import plural

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.tools.bootstrap import Interval
    from delegraph.tools.evaluation.detection import Detection
    from delegraph.tools.evaluation.preprocessing import Preprocessing
    from delegraph.tools.progress import Progress


def _split(ctx: click.Context, parameter: click.Parameter, text: str | None) -> tuple[str, ...]:
    return () if text is None else tuple(part.strip() for part in text.split(","))


@click.command("detection", cls=EvaluationCommand)
@evaluation_options
@images_option("Folder of the pictures.")
@file_option("--truth", "COCO's .json, or ground_truth.pb.", required=True)
@file_option("--ids", "Use only the pictures with these ids, one a line.")
@num_images_option
@file_option("--labels", "Classes of the ground truth, one a line.  [default: any]")
@click.option(
    "--class-offset",
    type=int,
    default=1,
    show_default=True,
    help="Number added to the model's classes.",
)
@click.option(
    "--outputs",
    callback=_split,
    metavar="LIST",
    help="Order: scores,boxes,count,classes.  [default: recognized]",
)
@switch_option("--keep-all", "Keep detections that the official script drops.")
@output_option("--csv", "FILE.csv", "Write each set-up's detections in each picture.", ".csv")
@number_option("--resamples", "Draws of the bootstrap, for intervals.", default=1000)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the bootstrap.")
@whole_picture_options
def command(
    evaluation: Evaluation,
    images: str,
    truth: str,
    ids: str | None,
    num_images: int,
    labels: str | None,
    keep_all: bool,
    csv: str | None,
    preprocessing: Preprocessing,
    **options: Any,
) -> None:
    """Evaluate a detector of objects: mean average precision.

    There are two definitions: the official tool's and COCO's. The official tool's counts crowds as
    objects, and a class without true objects as 0. COCO's needs the extra delegraph[coco].
    """
    from delegraph.tools.evaluation.detection import evaluate_detection
    from delegraph.tools.evaluation.ground_truth_files import read_ground_truth, read_picture_ids
    from delegraph.tools.evaluation.labelled_pictures import read_words

    known = read_ground_truth(truth)
    if ids is not None:
        known = known.of(read_picture_ids(ids))
    known = known.first(num_images)
    words = [] if labels is None else read_words(labels)

    def evaluate(progress: Progress) -> Detection:
        result = evaluate_detection(
            evaluation.setups,
            images,
            known,
            preprocessing,
            labels=words,
            prepared=not keep_all,
            journal=evaluation.journal,
            warmup_runs=evaluation.warmup_runs,
            progress=progress,
            **options,
        )
        if csv is not None:
            result.save_csv(csv)
        return result

    evaluation.finish(evaluate, print_detection)


def print_detection(out: Console, result: Detection) -> None:
    """Print precisions, drops, and the worst classes."""
    print_preprocessing(out, result.task.preprocessing)
    _print_better_offset(out, result)
    _print_precisions(out, result)
    if len(result.judgement.precisions) > 1:
        _print_drops(out, result)
    _print_thresholds(out, result)
    _print_classes(out, result)
    for position, precision in enumerate(result.judgement.precisions, 1):
        if precision.no_numbers:
            out.print(
                f"note: {plural(precision.no_numbers, 'detection')} of set-up {position} had "
                "infinities or NaN in them and were left out"
            )


def _print_precisions(out: Console, result: Detection) -> None:
    from delegraph.tools.evaluation.coco_precision import FIGURES
    from delegraph.tools.evaluation.detection_precision import DEFINITIONS

    heading(out, "Mean average precision (mAP)")
    columns: tuple[str, ...] = ("", "TFLite's", "95 % interval", "COCO's", "95 % interval")
    is_one = len(result.answers.keys) == 1
    rows: list[tuple[Any, ...]] = [
        (
            position,
            _figure(p.tflite.mean),
            "-" if is_one else _between(p.interval),
            "-" if p.coco is None else _figure(p.coco.figures["AP"]),
            "-" if is_one or p.coco_interval is None else _between(p.coco_interval),
        )
        for position, p in enumerate(result.judgement.precisions, 1)
    ]
    print_table(out, columns, rows, right=columns[1:], names=())
    if is_one:
        out.print("  1 picture: no interval")
    for name, text in zip(("TFLite's", "COCO's"), DEFINITIONS.values(), strict=True):
        out.print(f"  {name}: {text}")
    if result.judgement.without_coco is not None:
        out.print(f"note: no figures of COCO: {result.judgement.without_coco}")
        return
    heading(out, "COCO's figures")
    figures = [{} if p.coco is None else p.coco.figures for p in result.judgement.precisions]
    columns = ("figure", *setup_headings(figures))
    rows = [(name, *(_figure(each.get(name)) for each in figures)) for name in FIGURES]
    print_table(out, columns, rows, right=columns[1:], names=())


def _print_better_offset(out: Console, result: Detection) -> None:
    better = result.better_offset
    if better is not None:
        print_paragraph(
            out,
            f"note: {better.detections:,} detections of set-up 1 overlap an object, and "
            f"{better.right:,} of them have its class; with --class-offset {better.class_offset} "
            f"it would be {better.right_then:,}",
        )


def _print_drops(out: Console, result: Detection) -> None:
    judgement = result.judgement
    is_one = len(result.answers.keys) == 1
    changes = []
    for position, drop in enumerate(judgement.drops[1:], 1):
        coco = None if judgement.coco_drops is None else judgement.coco_drops[position]
        for name, each in (("TFLite's mAP", drop), ("COCO's mAP", coco)):
            if each is not None:
                changes.append((position + 1, name, each.drop, None if is_one else each.interval))
    print_changes(out, "figure", changes)


_LESS_IMPORTANT_OVERLAPS = ("0.55", "0.65", "0.85", "0.95", "0.70", "0.80", "0.60", "0.90")
"""Thresholds that narrow tables omit, in this order; JSON has all."""


def _print_thresholds(out: Console, result: Detection) -> None:
    from delegraph.tools.evaluation.tflite_matching import THRESHOLDS

    heading(out, "Average precision by overlap")
    columns = ("", "definition", *(f"{threshold:.2f}" for threshold in THRESHOLDS))
    rows: list[tuple[Any, ...]] = []
    for position, p in enumerate(result.judgement.precisions, 1):
        rows.append((position, "TFLite's", *map(_figure, p.tflite.by_threshold())))
        if p.coco is not None:
            rows.append((position, "COCO's", *map(_figure, p.coco.by_threshold.values())))
    less_important = tuple((threshold,) for threshold in _LESS_IMPORTANT_OVERLAPS)
    print_table(out, columns, rows, right=columns[2:], names=(), optional=less_important)


CLASSES_SHOWN = 10
"""Number of classes in the table, the worst ones; JSON has all."""


def _print_classes(out: Console, result: Detection) -> None:
    by_class = [p.tflite.by_class() for p in result.judgement.precisions]
    if not by_class[0]:
        return
    objects = Counter(int(kind) for picture in result.truth.pictures for kind in picture.classes)
    worst = sorted(objects.keys() & by_class[0].keys(), key=lambda k: (by_class[0][k], k))
    coco = [p.coco.by_class for p in result.judgement.precisions if p.coco is not None]
    numbers = [f" {number}" * (len(by_class) > 1) for number in range(1, len(by_class) + 1)]
    names = [f"{name}{number}" for name in ("TFLite's", "COCO's") for number in numbers]
    columns = ("class", "name", "objects", *names[: len(by_class) + len(coco)])
    heading(out, "Average precision by class, the worst first")
    rows = [
        (
            *(kind, result.class_name(kind), objects[kind]),
            *(_figure(each.get(kind)) for each in (*by_class, *coco)),
        )
        for kind in worst[:CLASSES_SHOWN]
    ]
    print_table(out, columns, rows, right=columns[2:])
    if len(worst) > CLASSES_SHOWN:
        out.print(f"  and {len(worst) - CLASSES_SHOWN} more; --json shows all")
    for position, each in enumerate(by_class, 1):
        stray = len(each.keys() - objects.keys())
        if stray:
            out.print(
                f"  set-up {position} found {stray} class{'es' * (stray != 1)} that no object has; "
                "each counts as 0"
            )


def _between(interval: Interval) -> str:
    return f"{_figure(interval.low)} to {_figure(interval.high)}"


def _figure(value: float | None) -> str:
    """Return a figure as text for a table; a dash for None or NaN.

    >>> _figure(0.25), _figure(float("nan"))
    ('0.2500', '-')
    """
    return "-" if value is None or value != value else f"{value:.4f}"
