"""``delegraph new``: the distribution of a new delegate, to start from."""

from __future__ import annotations

from pathlib import Path

import click

from delegraph.cli.options import diagnosis_options, json_option
from delegraph.cli.printing import console, print_json


@click.command("new")
@click.argument("name")
@click.option(
    "--directory",
    metavar="DIR",
    help="Write into this folder, which must be empty or absent. Default: ./delegraph-NAME.",
)
@click.option(
    "--operators",
    default="ADD,MUL",
    show_default=True,
    metavar="OP,...",
    help="Operators that the delegate takes at first: element-wise ones such as ADD, MUL, SIN.",
)
@json_option
@diagnosis_options
def command(name: str, directory: str | None, operators: str, as_json: bool) -> None:
    """Start a delegate: write a complete distribution.

    It has a plugin module, a delegate that works, tests with the conformance kit, and all that pip
    needs. NAME is what users will type after --delegate.
    """
    from delegraph.plugins import installed
    from delegraph.tools.scaffold import Project, write_project

    names = [operator.strip().upper() for operator in operators.split(",") if operator.strip()]
    project = Project.of(name, names)
    clashes = list(project.clashes(installed()))
    for clash in clashes:
        click.echo(f"warning: {clash}", err=True)
    folder = Path(project.distribution if directory is None else directory)
    files = list(map(str, write_project(project, folder)))
    if as_json:
        answer = {"delegate": project.name, "directory": str(folder), "files": files}
        print_json({**answer, "warnings": clashes})
        return
    out = console()
    for file in files:
        out.print(f"  {file}")
    out.print()
    out.print(f"Delegate {project.name} is in {folder}. Next:")
    out.print(f"  cd {folder}")
    out.print('  pip install -e ".[test]"')
    out.print("  python -m pytest")
