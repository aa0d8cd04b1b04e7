"""The part of the showcase about handwritten digits: answers, nodes taken and times."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np
from demo_run import MODELS, chosen, first_line, is_taken, plain_table, run, short
from numpy.typing import NDArray
from rich.columns import Columns
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from delegraph import Interpreter, Placement
from delegraph.errors import DelegraphError

DIGITS = [MODELS / "digits_float.tflite", MODELS / "digits_int8.tflite"]
SHADES = "  ", "░░", "▒▒", "▓▓", "██"
DRAWN = 5

Image = NDArray[np.uint8]  # [8, 8], 0 (paper) to 16 (ink)


@dataclass
class Trial:
    """One model run with one delegate, with its answers and times.

    Attributes:
        predictions: the digit that the model saw in each image.
        confidences: how sure it was, 0 to 1.
        times: nanoseconds for each image, from setting the input to reading the output.
    """

    model: Path
    delegate: str | None
    interpreter: Interpreter
    predictions: list[int] = field(default_factory=list)
    confidences: list[float] = field(default_factory=list)
    times: list[int] = field(default_factory=list)

    @property
    def median_ms(self) -> float:
        """Median time of an image in milliseconds."""
        return statistics.median(self.times) / 1e6

    def classify(self, image: Image) -> None:
        """Classify one image, and record the answer and the time."""
        values = (image[np.newaxis, :, :, np.newaxis] / 16).astype(np.float32)
        start = perf_counter_ns()
        scores = run(self.interpreter, values)
        self.times.append(perf_counter_ns() - start)
        self.predictions.append(int(scores.argmax()))
        self.confidences.append(float(scores.max()))


def show_digits(console: Console, delegates: list[str]) -> None:
    """Classify the test images with every model and delegate; print answers, nodes and times."""
    with np.load(MODELS / "digits_test.npz") as test:
        images, labels = test["images"], test["labels"]
    console.rule(f"[bold]Handwritten digits[/]: {len(labels)} unseen images", align="left")
    with ExitStack() as stack:
        trials, failures = prepare_trials(stack, delegates)
        classify_in_turns(trials, images)
        if trials:
            draw_digits(console, images, labels, trials[0])
            console.print(results_table(trials, labels))
        for failure in failures:
            console.print(f"  [red]{escape(failure)}[/]")
        for delegate in delegates:
            mine = [trial for trial in trials if trial.delegate == delegate]
            if any(is_taken(node) for trial in mine for node in trial.interpreter.placement.nodes):
                console.print(
                    f"  What [bold]{short(delegate)}[/] takes, and why it leaves the rest:"
                )
                console.print(placement_table(mine))


def prepare_trials(stack: ExitStack, delegates: list[str]) -> tuple[list[Trial], list[str]]:
    """Return a trial of each model without and with each delegate, and why others are skipped."""
    trials, failures = [], []
    for model in DIGITS:
        for delegate in [None, *delegates]:
            try:
                interpreter = stack.enter_context(Interpreter(model, delegates=chosen(delegate)))
                interpreter.allocate_tensors()
                trials.append(Trial(model, delegate, interpreter))
            except DelegraphError as error:
                failures.append(f"{model.stem} with {short(delegate)}: {first_line(error)}")
    return trials, failures


def classify_in_turns(trials: list[Trial], images: NDArray[np.uint8]) -> None:
    """Run every trial on every image, in a new order for each.

    So a busy machine slows all of them alike, and none always runs behind another model, whose data
    then fill the caches.
    """
    order = np.random.default_rng(0)
    for image in images:
        for i in order.permutation(len(trials)):
            trials[i].classify(image)


def draw_digits(console: Console, images: NDArray[Any], labels: NDArray[Any], trial: Trial) -> None:
    """Print some digits and the first mistake, with the model's answer under each."""
    wrong = [i for i, label in enumerate(labels) if trial.predictions[i] != label][:1]
    right = [np.flatnonzero(labels == digit)[0] for digit in dict.fromkeys(labels)]
    right = [i for i in right if i not in wrong]
    drawings = []
    for i in [*right[: DRAWN - len(wrong)], *wrong]:
        answer = f"{trial.predictions[i]} ({trial.confidences[i]:.0%})"
        verdict = f"[green]{answer}[/]" if i not in wrong else f"[red]{answer}, is {labels[i]}[/]"
        drawings.append(f"{draw(images[i])}\n{verdict}")
    console.print(Padding(Columns(drawings, padding=(0, 2)), (1, 0, 1, 2)))


def draw(image: Image) -> str:
    """Return an image as eight lines of block characters, darker for more ink."""
    return "\n".join("".join(SHADES[min(int(v) // 4, 4)] for v in row) for row in image)


def results_table(trials: list[Trial], labels: NDArray[Any]) -> Table:
    """Return a table with the accuracy, the delegated nodes and the time of every trial."""
    headings = ("model", "delegate", "nodes taken", "the others run on", "right", "same answers")
    table = plain_table(*headings, "ms per image")
    for model, group in groupby(trials, key=lambda trial: trial.model):
        alone, *others = group
        for trial in [alone, *others]:
            right = np.count_nonzero(np.array(trial.predictions) == labels)
            same = trial.predictions == alone.predictions
            table.add_row(
                model.stem if trial is alone else "",
                short(trial.delegate),
                nodes_taken(trial.interpreter.placement),
                runner_of_the_others(trial.interpreter.placement),
                f"{right} ({right / len(labels):.2%})",
                "" if trial is alone else "[green]yes[/]" if same else "[red]no[/]",
                f"{trial.median_ms:.2f}",
            )
        table.add_section()
    return table


def nodes_taken(placement: Placement) -> str:
    """Return how many nodes the requested delegates run, as ``3 of 15, 3 partitions``."""
    taken = sum(map(is_taken, placement.nodes))
    parts = sum(not partition.is_by_default for partition in placement.partitions)
    text = f"{taken} of {len(placement.nodes)}"
    return f"{text}, {parts} partition{'s' * (parts != 1)}" if taken else text


def runner_of_the_others(placement: Placement) -> str:
    """Return the name of what runs the remaining nodes; empty if no node remains."""
    left = [node for node in placement.nodes if not is_taken(node)]
    runners = dict.fromkeys(node.delegate or placement.host for node in left)
    return " and ".join(runners)


def placement_table(trials: list[Trial]) -> Table:
    """Return a table of where each node runs; neighbours with equal cells share a row."""
    table = plain_table("nodes", "operators", *(trial.model.stem for trial in trials))
    placements = [trial.interpreter.placement.nodes for trial in trials]
    delegate = short(trials[0].delegate)
    rows = [
        (nodes[0].index, nodes[0].op, tuple(where(node, delegate) for node in nodes))
        for nodes in zip(*placements, strict=True)
    ]
    for cells, group in groupby(rows, key=lambda row: row[2]):
        members = list(group)
        first, last = members[0][0], members[-1][0]
        operators = [f"{op} x{n}" if n > 1 else op for op, n in runs(m[1] for m in members)]
        table.add_row(
            str(first) if first == last else f"{first}-{last}", ", ".join(operators), *cells
        )
    return table


def where(node: Any, delegate: str) -> str:
    """Return the partition that runs a node, or the delegate's reason for leaving the node."""
    if is_taken(node):
        return f"[bold green]{node.delegate}[/], partition {node.partition}"
    reason = node.rejections.get(delegate, "its partition was not chosen")
    return f"[dim]{escape(str(reason))}[/]"


def runs(items: Iterator[str]) -> Iterator[tuple[str, int]]:
    """Yield each run of equal neighbouring items as the item and its count.

    >>> list(runs(iter(["ADD", "ADD", "SUB"])))
    [('ADD', 2), ('SUB', 1)]
    """
    for item, group in groupby(items):
        yield item, len(list(group))
