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
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from demo_digits import DIGITS, show_digits
from demo_run import MODELS, chosen, first_line, is_taken, plain_table, run, short
from rich.console import Console
from rich.markup import escape

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

SINES = MODELS / "sines.tflite"
PIPE_WIDTH = 120


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
    """Print the installed delegates."""
    console.rule("[bold]Delegraph[/]: delegates from installed packages", align="left")
    table = plain_table("delegate", "from", "does")
    for offer in installed().offers():
        origin = f"{offer.plugin.distribution} {offer.plugin.version}"
        table.add_row(f"[bold]{offer.spec.name}[/]", origin, escape(offer.spec.summary))
    console.print(table)


# -- f(x) = sin(x) + x + sin(2x) ---------------------------------------------------------------


def show_sines(console: Console, delegates: list[str]) -> None:
    """Print f(2) and the subsets of nodes into which each delegate cuts the graph."""
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


# -- TensorFlow's operators in the same graph ----------------------------------------------------


def show_flex(console: Console) -> None:
    """Rewrite operators of the graph as TensorFlow operators, and run them."""
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


def show_report(console: Console, delegates: list[str]) -> None:
    """Write an HTML report about the digits classifier, and print its path."""
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
    """Print the commands to try with the user's own model."""
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
    """Return ``delegraph`` if it is on the PATH, else the path of the command."""
    command = Path(sys.executable).parent / "delegraph"
    on_path = shutil.which("delegraph")
    if on_path is not None and Path(on_path) == command:
        return Path("delegraph")
    return command.relative_to(Path.cwd()) if command.is_relative_to(Path.cwd()) else command


if __name__ == "__main__":
    main()
