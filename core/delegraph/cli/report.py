"""``delegraph report``: one page that shows a model, who runs what, and what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from delegraph.cli.options import diagnosis_options, json_option
from delegraph.cli.printing import print_json, progress, size
from delegraph.cli.setup_options import setup_options

if TYPE_CHECKING:
    from delegraph.tools.setup import Setup


@click.command("report")
@setup_options
@click.option(
    "-o",
    "--output",
    metavar="FILE.html",
    default="report.html",
    show_default=True,
    help="Where the page goes; a file that is there is replaced.",
)
@json_option
@diagnosis_options
def command(setup: Setup, output: str, as_json: bool) -> None:
    """Write a page that shows a model.

    It has the graph, who runs what, and why not others. It is one file that loads nothing from
    elsewhere: it can be mailed, kept beside a model or printed.
    """
    from delegraph.tools.reporting.report import report

    with progress(f"making a report of {setup.model}"):
        made = report(setup)
        made.save(output)
    if as_json:
        print_json({"report": output, **made.to_json()})
    else:
        click.echo(
            f"{made.data['summary']}\nwritten to {output}, {size(Path(output).stat().st_size)}"
        )
