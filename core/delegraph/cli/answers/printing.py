"""Ways in which the subcommands print: plain tables, JSON, numbers, progress."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import click

from delegraph.cli.answers.progress_bar import PATIENCE, Lines
from delegraph.cli.answers.table_layout import (
    Column,
    Layout,
    dropped_folder,
    fitted,
    shortened_path,
    without_folder,
    wrapped,
)
from delegraph.cli.answers.table_layout import shortened as shortened
from delegraph.errors import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

PIPE_WIDTH = 160
"""Width in columns if standard output is no terminal and COLUMNS is not set."""

_WHOLE = {"": slice(None)}
"""The parts of a table without titles."""

_HANGING = 2
"""Number of blanks by which later lines of a sentence are indented further than the first."""


def console() -> Console:
    """Return a console for standard output, coloured on terminals only, without markup."""
    from rich.console import Console

    class Printable(Console):
        """Console that escapes unprintable characters; names may come from untrusted files."""

        def print(self, *objects: Any, **how: Any) -> None:
            shown = [printable(each) if isinstance(each, str) else each for each in objects]
            if len(shown) == 1 and isinstance(shown[0], str) and not how.get("soft_wrap"):
                shown = [hanging(shown[0], self.width)]
            super().print(*shown, **how)

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # main() then ends the command

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    return Printable(width=width, markup=False, emoji=False, highlight=False)


def hanging(text: str, width: int) -> str:
    """Wrap a sentence to lines of a width; lines after the first are indented.

    >>> print(hanging("  one two three", 10))
      one two
        three
    """
    indent = len(text) - len(text.lstrip()) + _HANGING
    return "\n".join(wrapped(text, max(width, indent + 1), " " * indent))


def print_table(
    out: Console,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: Sequence[str] = (),
    names: Sequence[str] = ("name",),
    sentences: Sequence[str] = ("reason",),
    optional: Sequence[Sequence[str]] = (),
    below: str = "",
    parts: Mapping[str, slice] = _WHOLE,
    indent: int = 2,
) -> list[str]:
    """Print rows as a table with bold headings; print nothing if there are no rows.

    Cells wrap between words. If lines are too short for all columns, each cell gets a line.
    Headings of the columns that are omitted are returned, except that of *below*.

    Args:
        out: the console to print to.
        columns: headings.
        rows: cells of each row, converted to text by ``str`` and :func:`printable`.
        right: headings of the columns that are aligned to the right.
        names: headings of the columns whose cells are shortened to fit the width.
        sentences: headings of the columns whose cells are sentences, which keep 24 characters.
        optional: groups of headings whose columns are omitted, the first group first, if other
            columns would be too narrow.
        below: heading of an optional column; where it is omitted, its cells are printed as lines
            below the rows, or above them if it is the first column.
        parts: titles, and the rows below each. All parts have the same columns, widths and names.
        indent: number of blanks before each row.
    """
    texts = [[printable(str(cell)) for cell in row] for row in rows]
    if not texts:
        return []
    found = [
        Column(heading, cells, heading in names, heading in right, heading in sentences)
        for heading, cells in zip(columns, zip(*texts, strict=True), strict=True)
    ]
    width = out.width - indent
    layout = fitted(found, width, optional)
    folder = "" if layout is None else dropped_folder(found, layout)
    if folder:
        found = [without_folder(folder, column) for column in found]
        layout = fitted(found, width, optional)
    if folder and (layout is None or set(names) & set(layout.headings)):
        print_paragraph(out, f".../ in names is {folder.removeprefix('[')}", indent=indent)
    for title, part in parts.items():
        if title:
            out.print(title, style="italic")
        cells = [_rows(column, part) for column in found]
        shown = [_records(cells)] if layout is None else _tables(layout, cells, part, below, width)
        for each in shown:
            _print_indented(out, each, indent)
    kept = columns if layout is None else layout.headings
    return [heading for heading in columns if heading not in (*kept, below)]


def _tables(
    layout: Layout, columns: Sequence[Column], rows: slice, below: str, width: int
) -> Iterator[RenderableType]:
    """Yield the table of *rows*; or its headings, then each row with the text of *below*."""
    from rich.padding import Padding
    from rich.text import Text

    under = [c.cells for c in columns if c.heading == below and below not in layout.headings]
    if not under:
        yield _table(_part(layout, rows))
        return
    yield _table(_part(layout, slice(0)))
    is_first = columns[0].heading == below
    left = 0 if is_first else layout.widths[0] + layout.gap
    for place, line in zip(range(len(layout.columns[0].cells))[rows], under[0], strict=True):
        row = _table(_part(layout, slice(place, place + 1)))
        row.show_header = False
        text = Text("\n".join(wrapped(line, width - left)), style="dim")
        parts: list[RenderableType] = [row, Padding(text, (0, 0, 0, left))] if line else [row]
        yield from reversed(parts) if is_first else parts


def _part(layout: Layout, rows: slice) -> Layout:
    return replace(layout, columns=tuple(_rows(column, rows) for column in layout.columns))


def _rows(column: Column, rows: slice) -> Column:
    return replace(column, cells=column.cells[rows])


def _table(layout: Layout) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, layout.gap, 0, 0), header_style="bold")
    for column, width in zip(layout.columns, layout.widths, strict=True):
        justify: Literal["left", "right"] = "right" if column.is_number else "left"
        title = "\n".join(wrapped(column.heading, width))
        table.add_column(title, justify=justify, overflow="fold", width=width)
    cells = [
        c.cells if c.is_number else ["\n".join(wrapped(text, width)) for text in c.cells]
        for c, width in zip(layout.columns, layout.widths, strict=True)
    ]
    for row in zip(*cells, strict=True):
        table.add_row(*row)
    return table


def _records(columns: Sequence[Column]) -> Table:
    """Return a table with a line for each cell, for lines that are too short for rows."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold", style="bold")
    table.add_column(overflow="fold")
    for row in zip(*(column.cells for column in columns), strict=True):
        if table.row_count:
            table.add_row()
        for column, cell in zip(columns, row, strict=True):
            table.add_row(column.heading, cell)
    return table


def print_facts(out: Console, facts: Iterable[tuple[str, object]], *, indent: int = 2) -> None:
    """Print a line for each fact: its name and its value, which is never shortened."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    shown = [(printable(name), printable(str(value))) for name, value in facts]
    room = out.width - indent - 2 - max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        table.add_row(name, "\n".join(wrapped(value, max(room, 1))))
    _print_indented(out, table, indent)


def print_paragraph(out: Console, text: str, *, indent: int = 2) -> None:
    """Print a sentence indented by some blanks; lines after its first are indented further."""
    from rich.text import Text

    _print_indented(out, Text(hanging(printable(text), out.width - indent)), indent)


def print_omitted(out: Console, headings: Iterable[str]) -> None:
    """Print a sentence about the columns for which the lines had no room."""
    if names := ", ".join(dict.fromkeys(headings)):
        print_paragraph(out, f"no room for {names}: wider terminals and --json show more")


def _print_indented(out: Console, shown: RenderableType, indent: int) -> None:
    from rich.padding import Padding

    padded = Padding(shown, (0, 0, 0, indent), expand=False)
    if out.is_terminal:
        out.print(padded)
        return
    with out.capture() as capture:
        out.print(padded)
    for line in capture.get().splitlines():
        print(line.rstrip())  # rich pads lines with blanks


def print_title(out: Console, path: str) -> None:
    """Print the path of a result's file; folders are omitted if it exceeds the width."""
    out.print(shortened_path(path, out.width), style="bold")


def heading(out: Console, text: str) -> None:
    """Print a heading after an empty line."""
    out.print()
    out.print(text, style="bold")


@contextlib.contextmanager
def only_json_printed() -> Iterator[None]:
    """Redirect all output, except that of :func:`print_json`, to stderr within the block.

    Text that delegates and plugins print, also from C code, goes to standard error.
    """
    from delegraph.plugins.standard_output import printed_to_stderr

    with printed_to_stderr():
        yield


class JsonAnswer(dict[str, Any]):
    """The command's JSON answer, printed at its end; ``main`` creates it."""


def print_json(value: Mapping[str, Any]) -> None:
    """Set *value* as the command's JSON answer, which is printed at the end."""
    ctx = click.get_current_context(silent=True)
    answer = None if ctx is None else ctx.find_object(JsonAnswer)
    if answer is None:
        write_json(value)
    else:
        answer.update(value)


def write_json(value: object) -> None:
    """Print *value* as JSON now; NaN and infinities, which JSON lacks, become null."""
    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    text = json_text(value, ensure_ascii=not is_unicode)
    print("\n".join(map(_json_printable, text.split("\n"))))


def json_text(value: object, *, ensure_ascii: bool = True) -> str:
    """Return *value* as JSON with a line for each entry, but lists of numbers on one line.

    >>> print(json_text({"seconds": [0.5, 0.25]}))
    {
      "seconds": [0.5, 0.25]
    }
    """
    text = json.dumps(finite(value), indent=2, ensure_ascii=ensure_ascii)
    return _NUMBERS.sub(lambda found: f"[{' '.join(found[1].split())}]", text)


_NUMBER = r"(?:-?\d[\d.eE+-]*|null)"

# Texts in JSON contain no line breaks, so that none of their brackets match.
_NUMBERS = re.compile(rf"\[\n *({_NUMBER}(?:,\n *{_NUMBER})*)\n *\]")


def _json_printable(line: str) -> str:
    r"""Return a line of JSON with unprintable characters as ``\u`` sequences."""
    if line.isprintable():
        return line
    return "".join(
        c if c.isprintable() else json.dumps(c)[1:-1] if c > _DELETE else "\\u007f" for c in line
    )


# The only ASCII character that JSON does not escape but terminals should not print.
_DELETE = "\x7f"


@contextlib.contextmanager
def progress(what: str) -> Iterator[None]:
    """Show *what* as a status on a terminal if the block runs longer than :data:`PATIENCE`.

    If standard error is no terminal, it gets a line from time to time.
    """
    if not sys.stderr.isatty():
        lines = Lines(what)
        try:
            yield
        finally:
            lines.stop()
        return
    from rich.console import Console

    status = Console(stderr=True).status(what)
    timer = threading.Timer(PATIENCE, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


def size(count: int | None) -> str:
    """Return a number of bytes as text for people; None, for an unknown number, becomes empty.

    >>> size(999), size(4_300_000)
    ('999 B', '4.3 MB')
    """
    if count is None:
        return ""
    value, unit = _scaled(count, ("B", "kB", "MB", "GB"))
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def amount(count: int) -> str:
    """Return a large number as text for people.

    >>> amount(999), amount(300_775_552)
    ('999', '300.8 M')
    """
    value, unit = _scaled(count, ("", " k", " M", " G"))
    return f"{value:.1f}{unit}" if unit else f"{count}"


def _scaled(value: float, units: Sequence[str]) -> tuple[float, str]:
    """Return a number below 1000 and its unit; each unit is 1000 times the one before it."""
    *smaller, largest = units
    for unit in smaller:
        if value < 1000:
            return value, unit
        value /= 1000
    return value, largest


def signature_text(shown: str, names: Iterable[str]) -> str:
    """Text that names the shown signature, and the other signatures of the model.

    >>> signature_text("decode", ["decode", "prefill_8"]), signature_text("run", ["run"])
    ('signature decode; others: prefill_8', 'signature run')
    """
    others = ", ".join(name for name in names if name != shown)
    return f"signature {shown}" + (f"; others: {others}" if others else "")


def finite(value: Any) -> Any:
    """Return *value* with None for NaN and infinities, which JSON lacks.

    >>> finite({"a": [1.0, float("nan")]})
    {'a': [1.0, None]}
    """
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
