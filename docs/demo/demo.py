"""The showcase that ``make demo`` runs: real models, with every installed delegate in turn.

    python docs/demo/demo.py

1. f(x) = sin(x) + x + sin(2x), a graph small enough to see how each delegate cuts it; then the same
   graph with TensorFlow's operators, as SELECT_TF_OPS gives.
2. A handwritten digits classifier, in float32 and in int8: does a delegate change the answers,
   which nodes does it take, and what time does it cost or save?
3. A page about the second, ``report.html`` in the present folder.

A delegate that gets installed later joins by itself. ``train_digits.py`` and ``make_sines.py``
beside this file made the models.
"""

from __future__ import annotations

import shutil
import statistics
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.columns import Columns
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from delegraph import Interpreter, Placement
from delegraph.delegation import (
    GraphInfo,
    NodeInfo,
    partition_graph_into_independent_node_subsets,
)
from delegraph.errors import DelegraphError
from delegraph.graph import load_model
from delegraph.plugins import installed
from delegraph.tools import Setup, report

MODELS = Path(__file__).parent / "models"
SINES = MODELS / "sines.tflite"
DIGITS = [MODELS / "digits_float.tflite", MODELS / "digits_int8.tflite"]
SHADES = "  ", "░░", "▒▒", "▓▓", "██"
DRAWN = 5
PIPE_WIDTH = 120

Image = NDArray[np.uint8]  # [8, 8], 0 (paper) to 16 (ink)


def main() -> None:
    """Print the whole showcase."""
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal without ░
    console = Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)
    delegates = [offer.address for offer in installed().offers()]
    show_delegates(console)
    show_sines(console, delegates)
    show_flex(console)
    show_digits(console, delegates)
    show_what_next(console)
    show_report(console, delegates)


def show_delegates(console: Console) -> None:
    """List what is installed."""
    console.rule("[bold]Delegraph[/]: delegates from installed packages", align="left")
    table = plain_table("delegate", "from", "does")
    for offer in installed().offers():
        origin = f"{offer.plugin.distribution} {offer.plugin.version}"
        table.add_row(f"[bold]{offer.spec.name}[/]", origin, escape(offer.spec.summary))
    console.print(table)


# -- f(x) = sin(x) + x + sin(2x) ---------------------------------------------------------------


def show_sines(console: Console, delegates: list[str]) -> None:
    """Print f(2) and the subsets into which each delegate cuts the graph."""
    console.rule("[bold]f(x) = sin(x) + x + sin(2x)[/]: how a graph is cut", align="left")
    table = plain_table("delegate", "subsets in order, [bold green]taken[/] or left", "f(2)")
    for delegate in [None, *delegates]:
        try:
            with Interpreter(SINES, delegates=chosen(delegate)) as interpreter:
                interpreter.allocate_tensors()
                subsets = " ".join(describe_subsets(interpreter.placement))
                value = run(interpreter, np.array([2], np.float32)).item()
                table.add_row(short(delegate), subsets, f"{value:.6f}")
        except DelegraphError as error:
            table.add_row(short(delegate), f"[red]{escape(first_line(error))}[/]", "")
    console.print(table)


def describe_subsets(placement: Placement) -> Iterator[str]:
    """Yield each subset of the graph as ``[SIN]``, those of a delegate in colour with its name.

    What the default delegate computes is left by the delegate that was asked for, and shown so.
    """
    graph = load_model(SINES).subgraphs[0]
    info = GraphInfo(
        nodes=[NodeInfo(op.inputs, op.outputs, False) for op in graph.operators],
        execution_plan=[op.index for op in graph.operators],
        num_total_nodes=len(graph.operators),
        inputs=graph.inputs,
        outputs=graph.outputs,
        variables=[],
    )
    taken = [node.index for node in placement.nodes if is_taken(node)]
    for subset in partition_graph_into_independent_node_subsets(
        info,
        nodes_to_partition=taken,
        greedily=True,
        control_edges=None,
        disable_node_fusion=False,
    ):
        first = placement.nodes[subset.nodes[0]]
        text = escape("[" + ", ".join(graph.operators[i].name for i in subset.nodes) + "]")
        yield f"[bold green]{text}:{first.delegate}[/]" if is_taken(first) else text


def is_taken(node: Any) -> bool:
    """Return whether a delegate that was asked for runs a node."""
    return node.delegate is not None and not node.is_by_default


# -- TensorFlow's operators in the same graph ----------------------------------------------------


def show_flex(console: Console) -> None:
    """Rewrite operators of the graph as TensorFlow's, and run them."""
    if "flex" not in {offer.spec.name for offer in installed().offers()}:
        return
    from delegraph_flex import flexify

    console.rule("[bold]The same with TensorFlow's operators[/] (SELECT_TF_OPS)", align="left")
    table = plain_table("rewritten", "operators", "run by", "f(2)")
    for nodes in (["SIN"], None):
        with Interpreter(model_content=flexify(SINES, nodes)) as interpreter:
            interpreter.allocate_tensors()
            value = run(interpreter, np.array([2], np.float32)).item()
            ops = " ".join(node.op for node in interpreter.placement.nodes)
            what = "all" if nodes is None else " ".join(nodes)
            table.add_row(what, ops, escape(str(interpreter.placement)), f"{value:.6f}")
    console.print(table)


# -- handwritten digits ------------------------------------------------------------------------


@dataclass
class Trial:
    """One model under one delegate, and what came of it.

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
        """Run one image and note answer and time."""
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
    """Return a trial of each model without and with each delegate, and why some cannot be."""
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
    """Draw some digits and the first mistake, each over the model's answer."""
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
    """Return accuracy, nodes taken and time of every trial."""
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
    """Return how much of the graph requested delegates have, as ``3 of 15, 3 partitions``."""
    taken = sum(map(is_taken, placement.nodes))
    parts = sum(not partition.is_by_default for partition in placement.partitions)
    text = f"{taken} of {len(placement.nodes)}"
    return f"{text}, {parts} partition{'s' * (parts != 1)}" if taken else text


def runner_of_the_others(placement: Placement) -> str:
    """Return who runs the nodes that no delegate asked for has; empty when there are none."""
    left = [node for node in placement.nodes if not is_taken(node)]
    runners = dict.fromkeys(node.delegate or placement.host for node in left)
    return " and ".join(runners)


def placement_table(trials: list[Trial]) -> Table:
    """Return where each node runs, neighbours that share the answer in one row."""
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
    """Return the delegate's partition that has a node, or the reason why the delegate left it."""
    if is_taken(node):
        return f"[bold green]{node.delegate}[/], partition {node.partition}"
    reason = node.rejections.get(delegate, "its partition was not chosen")
    return f"[dim]{escape(str(reason))}[/]"


def runs(items: Iterator[str]) -> Iterator[tuple[str, int]]:
    """Yield each item with how often it follows itself.

    >>> list(runs(iter(["ADD", "ADD", "SUB"])))
    [('ADD', 2), ('SUB', 1)]
    """
    for item, group in groupby(items):
        yield item, len(list(group))


# -- small things ------------------------------------------------------------------------------


def run(interpreter: Interpreter, values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the model's output for *values*, both as real numbers, whatever the model stores."""
    source = interpreter.get_input_details()[0]
    sink = interpreter.get_output_details()[0]
    interpreter.set_tensor(source["index"], quantize(values, source))
    interpreter.invoke()
    return dequantize(interpreter.get_tensor(sink["index"]), sink)


def quantize(values: NDArray[np.float32], details: dict[str, Any]) -> NDArray[Any]:
    """Return real numbers as the tensor stores them: ``round(real / scale) + zero_point``."""
    scale, zero_point = details["quantization"]
    if scale == 0:
        return values
    limits = np.iinfo(details["dtype"])
    stored: NDArray[Any] = np.clip(np.rint(values / scale) + zero_point, limits.min, limits.max)
    return stored.astype(limits.dtype)


def dequantize(values: NDArray[Any], details: dict[str, Any]) -> NDArray[np.float32]:
    """Return stored numbers as real ones: ``(stored - zero_point) * scale``."""
    scale, zero_point = details["quantization"]
    return values if scale == 0 else (values.astype(np.float32) - zero_point) * np.float32(scale)


def chosen(delegate: str | None) -> list[str]:
    """Return the ``delegates`` argument of an interpreter."""
    return [] if delegate is None else [delegate]


def short(address: str | None) -> str:
    """Return a delegate's name without its distribution."""
    return "none" if address is None else address.rpartition(":")[2]


def first_line(error: Exception) -> str:
    """Return what went wrong in one line."""
    return str(error).splitlines()[0]


def plain_table(*headings: str) -> Table:
    """Return an empty table in the showcase's style."""
    return Table(*headings, box=SIMPLE_HEAD, header_style="", pad_edge=True)


def show_report(console: Console, delegates: list[str]) -> None:
    """Write a page about the digits classifier, and print its path."""
    wanted = [name for name in delegates if short(name) in ("numba_cpu", "add_sub")]
    console.rule("[bold]A page about a model[/]", align="left")
    try:
        report(Setup(str(DIGITS[0]), delegates=wanted or None), memory=True).save("report.html")
    except DelegraphError as error:
        console.print(f"  [red]{escape(first_line(error))}[/]")
        return
    console.print("  Its graph, who runs what, and its memory; open it in a browser:")
    console.print(f"  [bold]{Path('report.html').resolve()}[/]", soft_wrap=True)


def show_what_next(console: Console) -> None:
    """Print what to type for a model of one's own."""
    command = how_to_call_delegraph()
    console.rule("[bold]Now with your own model[/]", align="left")
    for line, meaning in (
        ("run your.tflite --delegate add_sub", "run it and print the outputs"),
        ("explain your.tflite --delegate add_sub", "which nodes a delegate takes, and why not"),
        ("inspect your.tflite", "its tensors and operators"),
        ("report your.tflite --benchmark", "all of it on a page"),
        ("plugins list", "what is installed"),
    ):
        console.print(f"  [bold]{command} {line:<40}[/] # {meaning}", soft_wrap=True)
    console.print("  Write your own delegate: docs/first-delegate.md")


def how_to_call_delegraph() -> Path:
    """Return the command as one types it here: by name when that is found, else by its place."""
    command = Path(sys.executable).parent / "delegraph"
    on_path = shutil.which("delegraph")
    if on_path is not None and Path(on_path) == command:
        return Path("delegraph")
    return command.relative_to(Path.cwd()) if command.is_relative_to(Path.cwd()) else command


if __name__ == "__main__":
    main()
