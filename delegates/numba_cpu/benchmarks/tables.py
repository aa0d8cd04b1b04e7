"""How the benchmarks print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table


def print_table(
    out: Console, columns: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str]
) -> None:
    """Print rows under bold headings; the columns of *right* are aligned to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(str, row))
    out.print(Padding(table, (0, 0, 0, 2), expand=False))
