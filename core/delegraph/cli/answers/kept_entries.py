"""Table of the entries that delegates keep in a model file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from delegraph.cli.answers.printing import print_table, size

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.tools.kept_entries import KeptEntries


def print_kept_entries(out: Console, kept: Iterable[KeptEntries]) -> None:
    """Print a row for each delegate, processor level and number of threads."""
    rows = [(k.delegate, k.provider, _threads(k), k.entries, size(k.size)) for k in kept]
    columns = ("delegate", "by", "threads", "entries", "size")
    print_table(out, columns, rows, right=("threads", "entries", "size"))


def _threads(kept: KeptEntries) -> str:
    """Number of threads of entries, which may be the delegate's default."""
    if kept.threads is not None:
        return str(kept.threads)
    return "default" if kept.used_threads is None else f"{kept.used_threads} (default)"
