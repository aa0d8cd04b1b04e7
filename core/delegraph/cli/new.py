"""``delegraph new``: the distribution of a new delegate, to start from."""

from __future__ import annotations

from pathlib import Path

import click

from delegraph.cli.options import diagnosis_options
from delegraph.cli.printing import console


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
@diagnosis_options
def command(name: str, directory: str | None, operators: str) -> None:
    """Start a delegate: write a complete distribution.

    It has a plugin module, a delegate that works, tests with the conformance kit, and all that pip
    needs. NAME is what users will type after --delegate.
    """
    from delegraph.plugins import installed
    from delegraph.tools.scaffold import Project, write_project

    names = [operator.strip().upper() for operator in operators.split(",") if operator.strip()]
    project = Project.of(name, names)
    for clash in project.clashes(installed()):
        click.echo(f"warning: {clash}", err=True)
    folder = Path(project.distribution if directory is None else directory)
    out = console()
    for path in write_project(project, folder):
        out.print(f"  {path}")
    out.print()
    out.print(f"Delegate {project.name} is in {folder}. Next:")
    out.print(f"  cd {folder}")
    out.print('  pip install -e ".[test]"')
    out.print("  python -m pytest")
