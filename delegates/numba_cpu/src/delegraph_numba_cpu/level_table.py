"""Shows the levels of instructions and their kernels on the terminal."""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

_KERNELS = {
    "library": "library (prebuilt)",
    "objects": "objects (prebuilt)",
    "cache": "cache",
    "compiler": "compiler, at use",
    "none": "none",
}
_COLUMNS = ("level", "chosen by", "kernels", "size")
_GAP = 2


def print_levels(
    levels: Sequence[Mapping[str, Any]], lacks: Mapping[str, Sequence[str]], why: str
) -> None:
    """Print a table of all levels, then the reasons and the folders of the kernels.

    Args:
        levels: the usable levels, as ``delegraph numba info --json`` has them; the first is used.
        lacks: mapping from each other level to the missing features of the processor.
        why: reason why the first level is used.
    """
    rows = [_COLUMNS]
    for position, each in enumerate(levels):
        chosen = f"cpu={each['level']}" if position else "default"
        size = f"{each['bytes'] / 1e6:.1f} MB" if each["bytes"] else ""
        rows.append((each["level"], chosen, _KERNELS[each["source"]], size))
    rows += [(name, "", "not usable here", "") for name in lacks]
    click.secho("Levels of instructions", bold=True)
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width + _GAP) for cell, width in zip(row, widths, strict=True)]
        cells[-1] = row[-1].rjust(widths[-1])
        click.secho(("  " + "".join(cells)).rstrip(), bold=row is _COLUMNS)
    click.echo()
    for name, text in _facts(levels, lacks, why):
        say(text, f"  {name:<{_NAME}}", " " * (2 + _NAME))


_NAME = 10
"""Number of characters of the column of facts' names, blanks included."""


def _facts(
    levels: Sequence[Mapping[str, Any]], lacks: Mapping[str, Sequence[str]], why: str
) -> Iterator[tuple[str, str]]:
    """Yield the facts below the table, each with its name; for arguments, see `print_levels`."""
    yield "default", f"{levels[0]['level']}, {why}"
    for folder in dict.fromkeys(os.path.dirname(each["place"]) for each in levels):
        own = [each for each in levels if folder and os.path.dirname(each["place"]) == folder]
        if own:
            is_cache = own[0]["source"] in ("cache", "compiler")
            yield ("cache" if is_cache else "prebuilt"), folder
    compiled = [each for each in levels if each["source"] in ("cache", "compiler", "none")]
    for reason in dict.fromkeys(each["why"] for each in compiled):
        names = [each["level"] for each in compiled if each["why"] == reason]
        yield "compiled", f"{', '.join(names)}: {reason}"
    for missing in dict.fromkeys(tuple(what) for what in lacks.values()):
        names = [name for name, what in lacks.items() if tuple(what) == missing]
        yield "lacking", f"{', '.join(missing)} for {', '.join(names)}"


def say(text: str, first: str = "", later: str = "  ") -> None:
    """Print a sentence in lines of the terminal's width.

    Args:
        text: the sentence.
        first: text before its first line.
        later: blanks before its other lines.
    """
    width = shutil.get_terminal_size(fallback=(160, 24)).columns
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )
    click.echo("\n".join(lines))
