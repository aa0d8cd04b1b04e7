"""``delegraph edgetpu``: compiles models for the Edge TPU."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from delegraph.errors import ArgumentError, printable
from delegraph_edgetpu.chip import NEWEST_RUNTIME, OLDEST_RUNTIME
from delegraph_edgetpu.compilation import Compilation
from delegraph_edgetpu.compiler import compile as compile_models
from delegraph_edgetpu.log import TARGET_LINE, operator_lines, version_line
from delegraph_edgetpu.report import (
    count_lines,
    pipeline_line,
    summary_lines,
    unmapped_rows,
    work_lines,
)
from delegraph_edgetpu.settings import Balance
from delegraph_edgetpu.unmapped_table import print_unmapped, print_wrapped

EPILOG = """\b
Of the flags of edgetpu_compiler, two are missing:
  -a  several subgraphs: there is one, the first part that maps
  -t  a time limit: compiling takes seconds

\b
Exit codes:
  0  all models are compiled, even where some operators stay on the CPU
  1  a model cannot be compiled: it is damaged, not quantised, or nothing maps
  2  usage: a wrong argument, or a missing file
"""


_MISSING = {
    "several": "No such option '-a': one part is compiled, the first that maps. Leave it out; "
    "-i NAMES ends that part earlier, -n N cuts it into segments",
    "limit": "No such option '-t': compiling takes seconds. Leave it out, or set a limit outside: "
    "timeout 60 delegraph edgetpu compile MODEL",
}
"""Mapping from a missing flag of edgetpu_compiler to the error message for it."""


def _refuse(context: click.Context, option: click.Parameter, given: object) -> None:
    """Raise an error, with advice, if a flag of edgetpu_compiler is given that is missing here."""
    if given:
        raise click.UsageError(_MISSING[option.name or ""], context)


def _existing(
    context: click.Context, argument: click.Parameter, names: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the paths of models, or ``FILE#SECTION``; a missing file is a usage mistake."""
    for name in names:
        path = name if Path(name).exists() else name.rpartition("#")[0] or name
        click.Path(exists=True, dir_okay=False).convert(path, argument, context)
    return names


@click.group("edgetpu")
def command() -> None:
    """Compile models for a simulated Edge TPU; neither compiling nor running needs a device."""


@command.command("compile", epilog=EPILOG, short_help="Compile quantised models.")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...", callback=_existing)
@click.option(
    "-o",
    "--out_dir",
    "--out-dir",
    "folder",
    metavar="FOLDER",
    type=click.Path(file_okay=False),
    default=".",
    help="Where compiled models and logs go; here unless given.",
)
@click.option(
    "-n",
    "--num_segments",
    "--num-segments",
    "segments",
    metavar="N",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Cut the model into a pipeline of so many, one a device.",
)
@click.option(
    "--balance",
    metavar="WORD",
    type=click.Choice(["multiply-adds", "parameters"]),
    default="multiply-adds",
    show_default=True,
    help="What segments get equal shares of; or parameters.",
)
@click.option(
    "-s", "--show_operations", "--show-operations", is_flag=True, help="Print the log as well."
)
@click.option(
    "-i",
    "--intermediate_tensors",
    "--intermediate-tensors",
    "tensors",
    default="",
    metavar="NAMES",
    help="End the mapped part at these tensors: names with commas between.",
)
@click.option(
    "-m",
    "--min_runtime_version",
    "--min-runtime-version",
    "runtime",
    metavar="VERSION",
    type=click.IntRange(OLDEST_RUNTIME, NEWEST_RUNTIME),
    default=NEWEST_RUNTIME,
    show_default=True,
    help="The oldest runtime that has to run it; older ones lack operators.",
)
@click.option(
    "-d",
    "--search",
    "--search_delegate",
    "search",
    is_flag=True,
    help="Where the mapped part turns out not to run, try ever shorter ones.",
)
@click.option(
    "-k",
    "--delegate_search_step",
    "--search-step",
    "step",
    metavar="N",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Operators that each try leaves out more.",
)
@click.option(
    "-a",
    "--enable_multiple_subgraphs",
    "several",
    is_flag=True,
    hidden=True,
    is_eager=True,
    expose_value=False,
    callback=_refuse,
)
@click.option(
    "-t",
    "--timeout_sec",
    "limit",
    hidden=True,
    is_eager=True,
    expose_value=False,
    callback=_refuse,
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
@click.option(
    "-v",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, option, given: _print_version(context) if given else None,
    help="Show the version of this compiler and exit.",
)
def compile_command(
    models: tuple[str, ...],
    folder: str,
    segments: int,
    balance: Balance,
    show_operations: bool,
    tensors: str,
    runtime: int,
    search: bool,
    step: int,
    as_json: bool,
) -> int:
    """Compile quantised models: NAME.tflite becomes NAME_edgetpu.tflite with a log beside it.

    Compiled models are for Delegraph's simulated Edge TPU; a real one needs Google's
    edgetpu_compiler.

    Several models are compiled together: they share the cache for parameters on the chip, and the
    first model gets its part first.
    """
    if folder.endswith(".tflite"):
        raise click.BadParameter(
            f"{folder!r} is the name of a file, give a folder: files are named by their models",
            param_hint="'--out_dir'",
        )
    with Console(stderr=True).status("compiling"):
        compiled = compile_models(
            models,
            segments=segments,
            balance=balance,
            intermediate_tensors=tuple(filter(None, map(str.strip, tensors.split(",")))),
            min_runtime_version=runtime,
            search=search,
            search_step=step,
        )
        whole = compile_models(models, min_runtime_version=runtime) if segments > 1 else []
        _write(compiled, folder)
    if as_json:
        records = [_with_path(compilation, folder) for compilation in compiled]
        click.echo(json.dumps(records, indent=2))
    else:
        _print(compiled, folder, show_operations)
        for each in whole:
            click.echo()
            parts = [part for part in compiled if part.source == each.source]
            print_wrapped(printable(pipeline_line(parts, each)))
    return 0


def _print_version(context: click.Context) -> None:
    click.echo(version_line())
    context.exit()


def _write(compiled: Sequence[Compilation], folder: str) -> None:
    """Write all compiled files to *folder*; raise an error if two files have the same name."""
    names = Counter(compilation.name for compilation in compiled)
    twice = sorted(name for name, count in names.items() if count > 1)
    if twice:
        raise ArgumentError(
            f"{twice[0]!r} would be written twice: models of one call need different file names"
        )
    for compilation in compiled:
        compilation.write(folder)


def _with_path(compilation: Compilation, folder: str) -> dict[str, object]:
    return {"path": str(Path(folder) / compilation.name), **compilation.to_json()}


def _print(compiled: list[Compilation], folder: str, show_operations: bool) -> None:
    models = "Model" if len(compiled) == 1 else "Models"
    milliseconds = sum(compilation.seconds for compilation in compiled) * 1000
    click.echo(version_line())
    click.echo(f"\n{models} compiled successfully in {milliseconds:.0f} ms.")
    click.echo(TARGET_LINE)
    for compilation in compiled:
        click.echo()
        click.echo("\n".join(map(printable, summary_lines(compilation, folder))))
        _print_operators(compilation, show_operations)
        click.echo()
        for line in work_lines(compilation):
            print_wrapped(printable(line))


def _print_operators(compilation: Compilation, show_operations: bool) -> None:
    if compilation.unmapped:
        click.echo()
        click.echo("\n".join(map(printable, count_lines(compilation))))
    if show_operations:
        click.echo()
        click.echo("\n".join(map(printable, operator_lines(compilation.operators))))
    if compilation.unmapped:
        click.echo()
        click.secho("Operators that stay on the CPU", bold=True)
        print_unmapped(unmapped_rows(compilation.operators))
