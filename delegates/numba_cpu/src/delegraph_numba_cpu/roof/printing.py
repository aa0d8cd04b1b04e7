"""Shows the roofs of a model's operators on the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from delegraph.errors import printable
from delegraph_numba_cpu.roof.operators import (
    LEAST_OF_ROOF,
    LEAST_SECONDS,
    LEAST_SHARE,
    OperatorRoof,
    findings,
)
from delegraph_numba_cpu.roof.processor import ProcessorRoof
from delegraph_numba_cpu.roof.report import RoofReport

_RIGHT = ("time", "share", "Gop/s", "GB/s", "of roof")
_COLUMNS = (*_RIGHT, "roof from", "operators", "nodes", "output")

_WRAPPED = ("operators", "nodes")
"""Columns whose cells wrap between words."""

_OPTIONAL = ("GB/s", "Gop/s", "output", "roof from")
"""Columns that are left out in this order where lines are too short."""

_COMFORTABLE = 100
"""Number of characters of a line from which on there are two blanks between columns."""

_MOST_NAMES = 4
"""Largest number of operators that are named in the row of a partition without a roof."""

_MOST_ROWS = 40
_BRIEF_SECONDS, _BRIEF_SHARE = 1e-6, 0.01
"""Operators below both are not listed one by one, nor are those after the first 40."""


def print_roofs(out: Console, report: RoofReport) -> None:
    """Print the roof of the processor, then the findings, then all other operators."""
    roof, found = report.roof, findings(report.operators)
    threads = f"{roof.threads} thread{'s' * (roof.threads != 1)}"
    out.print(f"{printable(Path(report.model).name)}, {roof.level}, {threads}", style="bold")
    _say(out, _times_in_words(report))
    together = f", rates and caches of {threads} together" if roof.threads > 1 else ""
    rounds = f"the best of {roof.rounds} rounds between the runs"
    _say(out, f"roof{together}: {_in_words(roof)}; {rounds}")
    if report.of_roof is not None:
        _say(
            out,
            f"the operators together run at {report.of_roof:.0%} of their roof, which is "
            f"{_time(report.roof_seconds)}",
        )
    out.print()
    limits = f"below {LEAST_OF_ROOF:.0%} of the roof, over {LEAST_SHARE:.0%} of the time"
    rule = f"{limits}, at least {1e6 * LEAST_SECONDS:.0f} us"
    omitted: list[str] = []
    if found:
        _say(out, f"{len(found)} finding{'s' * (len(found) != 1)}: {rule}", style="bold")
        omitted += _print_rows(out, found)
        out.print()
    else:
        _say(out, f"no findings: nothing is {rule}")
    others = sorted((o for o in report.operators if not o.is_finding), key=lambda o: -o.seconds)
    omitted += _print_others(out, others)
    if names := ", ".join(dict.fromkeys(omitted)):
        _say(out, f"no room for {names}: wider terminals and --json show more")
    if not all(each.delegate for each in report.operators):
        _say(out, "(core): computed by Delegraph's own kernels, not by numba_cpu")
    for caution in report.cautions:
        _say(out, f"caution: {caution}")


def _times_in_words(report: RoofReport) -> str:
    """Return a sentence on the number of operators and their time."""
    others = [each for each in report.operators if each.roof_seconds is None]
    count = len(report.operators) - len(others)
    words = f"{count} operator{'s' * (count != 1)}"
    if others:
        names = " and ".join(sorted({str(each.delegate) for each in others}))
        time = _time(sum(each.seconds for each in others))
        words += f" and {len(others)} partition{'s' * (len(others) != 1)} of {names} "
        words += f"({time}, without a roof)"
    taken = _time(report.seconds)
    return f"{words}, {taken} together; timing each by itself adds up to 2 us to it"


def _say(out: Console, text: str, style: str | None = None) -> None:
    """Print a sentence in lines of the terminal's width; lines after the first are indented."""
    lines = textwrap.wrap(
        text,
        out.width,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    out.print("\n".join(lines), style=style, soft_wrap=True)


def _time(seconds: float) -> str:
    """Text of a time with its unit."""
    for unit, factor in (("us", 1e6), ("ms", 1e3)):
        if seconds * factor < 999.5:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.4g} s"


def _print_others(out: Console, others: Sequence[OperatorRoof]) -> list[str]:
    """Print the operators that are no findings, the slowest first, but for the briefest.

    The result is the names of the columns for which there is no room.
    """
    if not others:
        return []
    shown = [
        o for o in others[:_MOST_ROWS] if o.seconds >= _BRIEF_SECONDS or o.share >= _BRIEF_SHARE
    ]
    out.print("other operators, the slowest first", style="bold")
    omitted = _print_rows(out, shown) if shown else []
    hidden = others[len(shown) :]
    if hidden:
        longest = _time(max(each.seconds for each in hidden))
        share = sum(each.share for each in hidden)
        _say(
            out,
            f"and {len(hidden)} more of at most {longest}, {share:.1%} of the time together; "
            "--json lists them",
        )
    if any(each.is_too_brief for each in shown):
        least = f"{1e6 * LEAST_SECONDS:.0f} us"
        _say(out, f"* would be a finding, but takes less than {least}: too brief to be measured")
    return omitted


def _in_words(roof: ProcessorRoof) -> str:
    int8 = "int8 not measured" if roof.int8 is None else f"int8 {roof.int8 / 1e9:.0f} Gop/s"
    words = [f"float32 {roof.float32 / 1e9:.0f} GFLOP/s", int8]
    for memory in roof.memory:
        size = "" if memory.bytes is None else f" ({memory.bytes >> 10} KiB)"
        words.append(f"{memory.name}{size} {memory.bytes_per_second / 1e9:.0f} GB/s")
    return ", ".join(words)


def _names(each: OperatorRoof) -> str:
    """Return the names of the operators, as words between which a line may break."""
    if each.roof_seconds is None and len(each.nodes) > _MOST_NAMES:
        return f"{len(each.nodes)} operators ({each.delegate})"
    runner = None if each.delegate == "numba_cpu" else each.delegate or "core"
    return each.operators.replace("+", " + ") + (f" ({runner})" if runner else "")


def _numbers(nodes: Sequence[int]) -> str:
    """Numbers of *nodes* as text, consecutive ones as a range: ``3-5 8``."""
    ranges: list[list[int]] = []
    for node in nodes:
        if ranges and node == ranges[-1][-1] + 1:
            ranges[-1].append(node)
        else:
            ranges.append([node])
    return " ".join(f"{r[0]}-{r[-1]}" if len(r) > 1 else f"{r[0]}" for r in ranges)


def _print_rows(out: Console, operators: Sequence[OperatorRoof]) -> list[str]:
    """Print a table, and return the names of the columns for which there is no room."""
    gap = 2 if out.width >= _COMFORTABLE else 1
    marks = " " if any(each.is_too_brief for each in operators) else ""
    rows = [_cells(each, marks) for each in operators]
    widths = {
        column: max(len(word) for cell in (column, *cells) for word in _unbroken(column, cell))
        for column, *cells in zip(_COLUMNS, *rows, strict=True)
    }
    columns = list(_COLUMNS)
    for column in _OPTIONAL:
        if sum(widths[each] + gap for each in columns) - gap > out.width:
            columns.remove(column)
    fixed = sum(widths[each] for each in columns if each not in _WRAPPED)
    room = out.width - fixed - gap * (len(columns) - 1)
    names, nodes = (max(map(len, (each, *_column(rows, each)))) for each in _WRAPPED)
    widths["operators"] = min(names, max(widths["operators"], room - nodes))
    widths["nodes"] = min(nodes, max(widths["nodes"], room - widths["operators"]))
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(
            column.rjust(widths["time"]) if column == "time" else column,
            width=widths[column] if column in _WRAPPED else None,
            justify="right" if column in _RIGHT and column != "time" else "left",
            overflow="fold",
            no_wrap=column not in _WRAPPED,
        )
    for first, *others in rows:
        row = (first.rjust(widths["time"]), *others)  # rich would strip the blank of a missing mark
        table.add_row(*(cell for name, cell in zip(_COLUMNS, row, strict=True) if name in columns))
    omitted = [column for column in _COLUMNS if column not in columns]
    if out.is_terminal:
        out.print(table)
        return omitted
    with out.capture() as capture:
        out.print(table)
    for line in capture.get().splitlines():
        out.print(line.rstrip(), soft_wrap=True)  # rich pads lines with blanks
    return omitted


def _column(rows: Iterable[Sequence[str]], column: str) -> list[str]:
    """Return the cells of a column."""
    return [row[_COLUMNS.index(column)] for row in rows]


def _unbroken(column: str, cell: str) -> Sequence[str]:
    """Return the parts of a cell inside of which no line breaks."""
    return cell.split() if column in _WRAPPED else (cell,)


def _cells(each: OperatorRoof, unmarked: str) -> tuple[str, ...]:
    """Return the cells of an operator's row.

    *unmarked* replaces the mark of operators that are too brief to be findings.
    """
    rate, reached = each.operations_per_second, each.of_roof
    return (
        f"{_time(each.seconds)}{'*' if each.is_too_brief else unmarked}",
        f"{each.share:.1%}",
        f"{rate / 1e9:.1f}" if rate else "",
        f"{each.bytes_per_second / 1e9:.1f}",
        "" if reached is None else f"{reached:.0%}",
        each.bound or "",
        _names(each),
        _numbers(each.nodes),
        "x".join(map(str, each.shape)),
    )
