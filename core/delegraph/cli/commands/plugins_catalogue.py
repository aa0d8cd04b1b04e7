"""``delegraph plugins catalogue``: lists packages with plugins from their metadata."""

from __future__ import annotations

from pathlib import Path

import click

from delegraph.cli.answers.printing import console, print_json, print_paragraph
from delegraph.cli.answers.result_file import write_text
from delegraph.cli.options.arguments import diagnosis_options, json_option
from delegraph.cli.options.output_files import OutputFile
from delegraph.quantities import plural


@click.command("catalogue")
@click.option(
    "--wheels",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Look at the wheels in this folder.  [default: what is installed]",
)
@click.option(
    "-o",
    "--output",
    type=OutputFile(".html", ".md"),
    metavar="FILE",
    help="Write a page: FILE.html or FILE.md.",
)
@json_option
@diagnosis_options
def catalogue(wheels: Path | None, output: str | None, as_json: bool) -> None:
    """List packages with plugins from their metadata alone.

    No plugin is imported, so wheels need not be installed or trusted. A package's badge is its
    project URL "Delegraph badge".
    """
    from delegraph.tools.plugin_catalogue import (
        html_page,
        installed_packages,
        markdown_page,
        packages_of_wheels,
    )

    packages, unreadable = installed_packages() if wheels is None else packages_of_wheels(wheels)
    for name, reason in unreadable.items():
        click.echo(f"warning: {name} is left out: {reason}", err=True)
    if output is not None:
        page = markdown_page if output.lower().endswith(".md") else html_page
        write_text(output, page(packages), "--output")
    if as_json:
        shown = [package.to_json() for package in packages]
        print_json({"packages": shown, "unreadable": unreadable})
        return
    out = console()
    if output is not None:
        out.print(f"{plural(len(packages), 'package')} in {output}")
        return
    if not packages:
        out.print("no packages with plugins")
    for package in packages:
        out.print(f"{package.distribution} {package.version}", style="bold")
        print_paragraph(out, package.summary)
        print_paragraph(out, "; ".join(package.facts))
