"""Shows the roofs of a model's operators on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from delegraph.errors import printable
from delegraph_numba_cpu.roof.operators import (
    LEAST_OF_ROOF,
    LEAST_SHARE,
    OperatorRoof,
    findings,
)
from delegraph_numba_cpu.roof.processor import ProcessorRoof
from delegraph_numba_cpu.roof.report import RoofReport

_RIGHT = ("us", "share", "Gop/s", "GB/s", "of roof")
_COLUMNS = (*_RIGHT, "bound", "operators", "nodes", "output")

_COMFORTABLE = 100
"""Number of characters of a line from which on there are two blanks between columns."""


def print_roofs(out: Console, report: RoofReport) -> None:
    """Print the roof of the processor, then the findings, then all other operators."""
    roof, found = report.roof, findings(report.operators)
    threads = f"{roof.threads} thread{'s' * (roof.threads != 1)}"
    out.print(f"{printable(Path(report.model).name)}, {roof.level}, {threads}", style="bold")
    out.print(
        f"{len(report.operators)} operators, {1e6 * report.seconds:.1f} us together;"
        " timing each by itself adds up to 2 us to it"
    )
    out.print(f"roof: {_in_words(roof)}\n")
    limits = f"below {LEAST_OF_ROOF:.0%} of the roof, over {LEAST_SHARE:.0%} of the time"
    if found:
        out.print(f"{len(found)} finding{'s' * (len(found) != 1)}: {limits}", style="bold")
        _print_rows(out, found)
        out.print()
    else:
        out.print(f"no findings: nothing is {limits}")
    others = sorted((o for o in report.operators if not o.is_finding), key=lambda o: -o.seconds)
    if others:
        out.print("other operators, the slowest first", style="bold")
        _print_rows(out, others)


def _in_words(roof: ProcessorRoof) -> str:
    int8 = "int8 not measured" if roof.int8 is None else f"int8 {roof.int8 / 1e9:.0f} Gop/s"
    words = [f"float32 {roof.float32 / 1e9:.0f} GFLOP/s", int8]
    for memory in roof.memory:
        size = "" if memory.bytes is None else f" ({memory.bytes >> 10} KiB)"
        words.append(f"{memory.name}{size} {memory.bytes_per_second / 1e9:.0f} GB/s")
    return ", ".join(words)


def _names(each: OperatorRoof) -> str:
    """Return the names of the operators, as words between which a line may break."""
    return each.operators.replace("+", " + ") + ("" if each.delegate else " (core)")


def _numbers(nodes: Sequence[int]) -> str:
    """Return ``3-5`` for consecutive nodes, else all numbers."""
    is_range = len(nodes) > 1 and list(nodes) == list(range(nodes[0], nodes[-1] + 1))
    return f"{nodes[0]}-{nodes[-1]}" if is_range else " ".join(map(str, nodes))


def _print_rows(out: Console, operators: Iterable[OperatorRoof]) -> None:
    gap = 2 if out.width >= _COMFORTABLE else 1
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    operators = tuple(operators)
    longest = max(len(word) for each in operators for word in _names(each).split())
    for column in _COLUMNS:
        table.add_column(
            column,
            min_width=longest if column == "operators" else None,
            justify="right" if column in _RIGHT else "left",
            overflow="fold",
            no_wrap=column not in ("operators", "nodes"),
        )
    for each in operators:
        rate, reached = each.operations_per_second, each.of_roof
        table.add_row(
            f"{1e6 * each.seconds:.1f}",
            f"{each.share:.1%}",
            f"{rate / 1e9:.1f}" if rate else "",
            f"{each.bytes_per_second / 1e9:.1f}",
            "" if reached is None else f"{reached:.0%}",
            each.bound,
            _names(each),
            _numbers(each.nodes),
            "x".join(map(str, each.shape)),
        )
    out.print(table)
