"""Shows the operators that stay on the CPU on the terminal."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence

import click

from delegraph.errors import printable

_HEADINGS = ("node", "operator", "why", "remedy")
_GAP = 2
_INDENT = 2
_NARROWEST = 18
"""Smallest width of the columns of texts, in characters; narrower terminals get a list."""

_COMFORTABLE = 40
"""Width of the columns of texts from which on operators need not wrap."""

_PIPE_WIDTH = 160


def print_unmapped(rows: Sequence[tuple[str, str, str, str]]) -> None:
    """Print operators with their reasons and remedies, as a table if lines are long enough.

    A row has nodes, operators, reason and remedy.
    """
    shown = [tuple(map(printable, row)) for row in rows]
    nodes, operators = (_column(i, shown) for i in (0, 1))
    free = _width() - _INDENT - nodes - 3 * _GAP
    operators = max(operators, min(free - 2 * _COMFORTABLE, max(len(row[1]) for row in shown)))
    room = (free - operators) // 2
    if room < _NARROWEST:
        for node, operator, why, remedy in shown:
            print_wrapped(f"{'node' if node.isdecimal() else 'nodes'} {node}: {operator}", "  ")
            print_wrapped(f"why     {why}", "    ", 8)
            print_wrapped(f"remedy  {remedy}", "    ", 8)
        return
    widths = (nodes, operators, room, room)
    for row in (_HEADINGS, *shown):
        cells = [_lines(cell, width) for cell, width in zip(row, widths, strict=True)]
        for i in range(max(map(len, cells))):
            parts = [lines[i] if i < len(lines) else "" for lines in cells]
            padded = (part.ljust(width + _GAP) for part, width in zip(parts, widths, strict=True))
            click.secho((" " * _INDENT + "".join(padded)).rstrip(), bold=row is _HEADINGS)


def _column(index: int, rows: Sequence[tuple[str, ...]]) -> int:
    """Width of a column that is wrapped between words: the width of its longest word."""
    cells = [_HEADINGS[index], *(row[index] for row in rows)]
    return max(len(word) for cell in cells for word in cell.split())


def _lines(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False)


def print_wrapped(text: str, indent: str = "", later: int = 2) -> None:
    """Print a sentence in lines of the terminal's width.

    Args:
        text: the sentence.
        indent: blanks before each line.
        later: number of further blanks before the lines after the first.
    """
    lines = textwrap.wrap(
        text,
        _width(),
        initial_indent=indent,
        subsequent_indent=indent + " " * later,
        break_long_words=False,
        break_on_hyphens=False,
    )
    click.echo("\n".join(lines))


def _width() -> int:
    """Width of the terminal in characters; a pipe has 160 unless COLUMNS is set."""
    fallback = (_PIPE_WIDTH, 24)
    return shutil.get_terminal_size(fallback).columns if sys.stdout else _PIPE_WIDTH
