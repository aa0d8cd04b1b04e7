"""``delegraph new``: writes the distribution of a new delegate or operator, as a start."""

from __future__ import annotations

from pathlib import Path

import click

from delegraph.cli.answers.printing import console, print_json
from delegraph.cli.options.arguments import diagnosis_options, json_option
from delegraph.cli.options.kinds import choice_option
from delegraph.cli.options.sections import SectionedCommand

TEMPLATES = ("kernel", "engine", "compiler", "custom-op")
"""Names of the ``KINDS`` in tools/scaffold.py, copied so that help need not import it."""

ENGINES = ("custom", "onnxruntime", "openvino")
"""Names of the ``ENGINES`` in tools/scaffold.py, copied for the same reason."""


@click.command("new", cls=SectionedCommand)
@click.argument("name")
@choice_option("--template", TEMPLATES, "Kind of plugin.", show_default="kernel")
@choice_option("--engine", ENGINES, "Engine of the delegate.", show_default="custom")
@click.option(
    "--directory",
    metavar="DIR",
    help="An empty or new folder.  [default: ./delegraph-NAME]",
)
@click.option(
    "--operators",
    metavar="OP,...",
    help="Element-wise operators to begin with.  [default: ADD,MUL]",
)
@json_option
@diagnosis_options
def command(
    name: str,
    template: str | None,
    engine: str | None,
    directory: str | None,
    operators: str | None,
    as_json: bool,
) -> None:
    """Start a delegate or a custom operator, as a distribution.

    The distribution has a plugin module, a working delegate, tests with the conformance kit, and
    all files that pip needs. NAME is the word that users type after --delegate; the custom operator
    my-op is called MyOp in models.
    """
    if template is None:
        template = "kernel" if engine is None else "engine"
    if engine is not None and template not in ("engine", "compiler"):
        raise click.UsageError(f"--engine is for --template engine or compiler, not {template}")
    if operators is not None and template == "custom-op":
        raise click.UsageError("--operators is for delegates, not for --template custom-op")
    if operators is not None and engine not in (None, "custom"):
        raise click.UsageError(
            f"--operators is not for --engine {engine}: change engine.py instead"
        )
    from delegraph.plugins import installed
    from delegraph.tools.scaffold import Project, write_project

    given = "ADD,MUL" if operators is None else operators
    names = [operator.strip().upper() for operator in given.split(",") if operator.strip()]
    project = Project.of(name, names, template, engine or "custom")
    project.require_new()
    clashes = project.clashes(installed())
    for clash in clashes:
        click.echo(f"warning: {clash}", err=True)
    folder = Path(project.distribution if directory is None else directory)
    files = list(map(str, write_project(project, folder)))
    is_delegate = project.kind.is_delegate
    what, shown = ("Delegate", project.name) if is_delegate else ("Operator", project.title)
    if as_json:
        answer = {
            what.lower(): shown,
            "template": template,
            "directory": str(folder),
            "files": files,
        }
        print_json({**answer, "warnings": clashes})
        return
    out = console()
    for file in files:
        out.print(f"  {file}")
    out.print()
    out.print(f"{what} {shown} is in {folder}; Python imports it as {project.package}.")
    out.print("Next:")
    out.print(f"  cd {folder}")
    out.print('  pip install -e ".[test]"')
    out.print("  python -m pytest")
