"""HTML tables of records, which notebooks show.

This module is in a low layer because ``Placement`` uses it. The tables have the notebook's own
colours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from delegraph.errors import printable

MOST_ROWS = 60
"""Largest number of rows that a table shows; more would need scrolling in a notebook."""


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    r"""Return an HTML table under a title; numbers are aligned to the right.

    Args:
        title: title of the table, one line.
        columns: headings.
        rows: rows of cells; None is an empty cell. Only the first :data:`MOST_ROWS` rows are shown,
            with the number of further rows below.

    >>> html_table("<b>", ["x"], [[1.5]])
    '<p>&lt;b&gt;</p><table><thead>...<td style="text-align:right">1.5</td></tr></tbody></table>'
    """
    waiting = iter(rows)
    body = "".join(map(_row, islice(waiting, MOST_ROWS)))
    more = sum(1 for _ in waiting)
    head = "".join(f'<th style="text-align:left">{_text(column)}</th>' for column in columns)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<p>{_text(title)}</p>{table if body else ''}{f'<p>and {more} more</p>' * bool(more)}"


def _row(cells: Sequence[object]) -> str:
    return f"<tr>{''.join(map(_cell, cells))}</tr>"


def _cell(value: object) -> str:
    side = "right" if isinstance(value, int | float) and not isinstance(value, bool) else "left"
    if isinstance(value, float):
        value = f"{value:.5g}"
    return f'<td style="text-align:{side}">{_text("" if value is None else value)}</td>'


def _text(value: object) -> str:
    from html import escape  # lazy import: only notebooks show tables

    return escape(printable(str(value)))
