"""Tables that leave out columns of less importance where lines are too short for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from delegraph.cli.answers.printing import print_table

if TYPE_CHECKING:
    from rich.console import Console

_SHORT_NAME = 16
"""Width that names need at least; they are shortened to it before a column is left out."""


def print_fitting_table(
    out: Console,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    less: Sequence[Sequence[str]],
    *,
    right: Sequence[str],
    names: Sequence[str] = ("name",),
) -> None:
    """Print a table without the columns of less importance that lines are too short for.

    Args:
        out: the console to print to.
        columns: headings.
        rows: cells of each row.
        less: groups of headings, the least important first.
        right: headings of the columns that are aligned to the right.
        names: headings of the columns whose cells are shortened to fit the width.
    """
    kept = list(range(len(columns)))
    for headings in less if rows else ():
        cells = ((i, [columns[i], *(row[i] for row in rows)]) for i in kept)
        widths = [max(_width(cell, columns[i] in names) for cell in texts) for i, texts in cells]
        if sum(widths) + 2 * len(kept) <= out.width:
            break
        kept = [i for i in kept if columns[i] not in headings]
    shown = [[row[i] for i in kept] for row in rows]
    print_table(out, [columns[i] for i in kept], shown, right=right, names=names)


def _width(cell: object, is_name: bool) -> int:
    width = len(str(cell))
    return min(width, _SHORT_NAME) if is_name else width
