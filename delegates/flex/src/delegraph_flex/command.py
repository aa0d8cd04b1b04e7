"""``delegraph flex``: makes models with TensorFlow's operators."""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from delegraph.delegation import node_numbers
from delegraph.errors import ArgumentError, DelegraphError, ModelError, PluginError, printable
from delegraph.plugins import printed_to_stderr
from delegraph_flex.conversion import BUILTINS_FIRST, convert
from delegraph_flex.executors import has_tensorflow
from delegraph_flex.extras import install_command
from delegraph_flex.operator_report import OperatorReport, operator_report
from delegraph_flex.rewriting import Flexified, rewritten

EPILOG = """\b
Exit codes:
  0  the model is written
  1  it cannot be made: TensorFlow's converter refuses it, or nothing can be rewritten
  2  usage: a wrong argument, or a missing file
  3  TensorFlow is not installed
"""
OPERATORS = {"builtin-first": BUILTINS_FIRST, "tensorflow": ("SELECT_TF_OPS",)}

output_option = click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    metavar="FILE.tflite",
    help="What to write; a name made of the source's in this folder unless given.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")


@click.group("flex")
def command() -> None:
    """Make models with TensorFlow's operators, which the delegate flex runs."""


@command.command("convert", epilog=EPILOG)
@click.argument("source")
@output_option
@click.option(
    "--operators",
    type=click.Choice(list(OPERATORS)),
    default="builtin-first",
    show_default=True,
    help="A builtin operator wherever there is one, or TensorFlow's for everything.",
)
@click.option(
    "--signature",
    "signatures",
    multiple=True,
    metavar="NAME",
    help="Of a SavedModel, the signature to convert; repeat for several. All unless given.",
)
@click.option(
    "--allow-all",
    is_flag=True,
    help="Let operators through that the converter does not write by itself.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show what TensorFlow says meanwhile.")
@json_option
def convert_command(
    source: str,
    output: str | None,
    operators: str,
    signatures: tuple[str, ...],
    allow_all: bool,
    verbose: bool,
    as_json: bool,
) -> int:
    """Convert a TensorFlow model; this needs TensorFlow.

    SOURCE is the folder of a SavedModel, a .keras or .h5 file, or FILE.py:NAME. NAME is a function,
    a Keras model or a concrete function that the Python file defines. The file is run.
    """
    if not has_tensorflow():
        raise PluginError(
            f"converting needs TensorFlow, which is not installed: {install_command('tensorflow')}"
        )
    path = Path(output or _stem(source) + ".tflite")
    with _progress("converting"), printed_to_stderr() if verbose else _quiet():
        content = _converted(source, OPERATORS[operators], signatures, allow_all)
    _write(path, content)
    report = operator_report(content)
    if as_json:
        _print_json(path, content, report)
    else:
        _print_report(path, content, report)
    return 0


def _stem(source: str) -> str:
    """Return the file name for the output of *source*, without a suffix."""
    file, _, name = source.rpartition(".py:")
    return name if file else Path(source).resolve().stem


def _converted(
    source: str, operators: Sequence[str], signatures: Sequence[str], allow_all: bool
) -> bytes:
    """Return the model converted from *source*; errors of the converter become a ModelError.

    *operators* are names of members of ``tf.lite.OpsSet``. *signatures* are the keys of the
    signatures to convert; without any, all are converted. *allow_all* is as in :func:`convert`.
    """
    try:
        is_code = ".py:" in source and not Path(source).exists()
        model = _defined(source) if is_code else source
        return convert(model, operators, signatures=signatures, allow_all=allow_all)
    except DelegraphError:
        raise
    except Exception as error:
        raise ModelError(f"TensorFlow cannot convert {source!r}: {_essence(error)}") from error


def _defined(source: str) -> Any:
    """Return the Python object that *source*, ``FILE.py:NAME``, names.

    The file is executed, and may import modules from its directory.
    """
    file, _, name = source.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise ArgumentError(f"no Python file {file!r}")
    sys.path.insert(0, str(path.resolve().parent))
    try:
        defined = runpy.run_path(file)
    finally:
        sys.path.pop(0)
    if name not in defined:
        raise ArgumentError(f"{file!r} defines no {name!r}")
    return defined[name]


def _essence(error: Exception) -> str:
    """Return the short reason in *error*, whose full text quotes source code."""
    message = str(error)
    lines = [line.partition("error: ")[2].strip() for line in message.splitlines()]
    found = dict.fromkeys(line for line in lines if line and not line.endswith(":"))
    words = "; ".join(found) or f"{type(error).__name__}: {message[:300]}"
    hint = " (--allow-all lets operators through that it does not write by itself)"
    return words + hint * ("neither a custom op nor a flex op" in message)


@contextlib.contextmanager
def _progress(what: str) -> Iterator[None]:
    """Show *what* as a status on the terminal while the block runs, even if stderr is a file."""
    if not sys.stderr.isatty():
        yield
        return
    with os.fdopen(os.dup(2), "w") as terminal, Console(file=terminal).status(what):
        yield


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Discard output to stdout and stderr while the block runs, also of TensorFlow's C++ code."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    kept = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    with open(os.devnull, "w") as nothing:
        for descriptor in kept:
            os.dup2(nothing.fileno(), descriptor)
        try:
            with contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):
                yield
        finally:
            for descriptor, old in kept.items():
                os.dup2(old, descriptor)
                os.close(old)


@command.command(
    "flexify",
    epilog=EPILOG,
    short_help="Rewrite builtin operators of a model as TensorFlow's.",
)
@click.argument("model", metavar="MODEL")
@output_option
@click.option(
    "--node",
    "nodes",
    multiple=True,
    metavar="NAME|INDEX",
    help="What to rewrite: all operators of a name, SIN, or one by its index; repeat for several. "
    "All that can be rewritten unless given.",
)
@json_option
def flexify_command(model: str, output: str | None, nodes: tuple[str, ...], as_json: bool) -> int:
    """Rewrite builtin operators of a .tflite file as TensorFlow's; this needs no TensorFlow.

    An operator that does several things, such as a convolution with bias and activation, becomes
    several operators. All other parts of the model are kept.
    """
    path = Path(output or f"{Path(model).stem}_flex.tflite")
    if path.exists() and os.path.exists(model) and path.samefile(model):
        raise ArgumentError(f"{os.fspath(path)!r} is the model itself: give -o another name")
    wanted = [int(node) if node.isdecimal() else node for node in nodes]
    flexified = rewritten(model, wanted or None)
    if not flexified.became:
        raise ModelError(f"nothing of {model!r} can be rewritten{_reasons(flexified)}")
    _write(path, flexified.content)
    report = operator_report(flexified.content)
    if as_json:
        _print_json(path, flexified.content, report, **_changes(flexified))
    else:
        _print_report(path, flexified.content, report)
        _print_changes(flexified)
    return 0


def _reasons(flexified: Flexified) -> str:
    """Return why no operator of *flexified* was rewritten, one reason per kind.

    The result is the last part of a message.
    """
    reasons: dict[str, str] = {}
    for name, why in flexified.left.values():
        reasons.setdefault(name, f"{name}: {why}")
    return f": {'; '.join(reasons.values())}" if reasons else ": it has no operators"


def _changes(flexified: Flexified) -> dict[str, Any]:
    return {
        "rewritten": [
            {"node": node, "operator": name, "becomes": ops}
            for node, (name, ops) in flexified.became.items()
        ],
        "left": [
            {"node": node, "operator": name, "reason": why or None}
            for node, (name, why) in flexified.left.items()
        ],
    }


def _write(path: Path, content: bytes) -> None:
    with _as_usage_error(path):
        path.write_bytes(content)


@contextlib.contextmanager
def _as_usage_error(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ArgumentError(f"cannot write {os.fspath(path)!r}: {error.strerror}") from error


def _print_json(path: Path, content: bytes, report: OperatorReport, **more: Any) -> None:
    record = {"path": os.fspath(path), "bytes": len(content), **asdict(report), **more}
    click.echo(json.dumps(record, indent=2))


def _print_report(path: Path, content: bytes, report: OperatorReport) -> None:
    flex = sum(use.count for use in report.flex)
    click.echo(printable(os.fspath(path)))
    click.echo(
        f"  {_size(len(content))}, operators: {report.builtin} builtin, {flex} of TensorFlow"
    )
    _print_table(
        "Operators of TensorFlow",
        ["operator", "count", "runs by"],
        [(use.name, str(use.count), use.runs_by()) for use in report.flex],
    )


def _print_changes(flexified: Flexified) -> None:
    became = {node: (name, ", ".join(ops)) for node, (name, ops) in flexified.became.items()}
    _print_table("Rewritten", ["count", "operator", "becomes", "nodes"], _grouped(became))
    left = {node: (name, why) for node, (name, why) in flexified.left.items() if why}
    _print_table("Left as it is", ["count", "operator", "why", "nodes"], _grouped(left))


def _grouped(facts: Mapping[int, tuple[str, str]]) -> list[tuple[str, ...]]:
    """Return a row for each kind of node: count, operator, fact of *facts*, and the nodes."""
    groups: dict[tuple[str, str], list[int]] = {}
    for node, fact in facts.items():
        groups.setdefault(fact, []).append(node)
    ordered = sorted(groups.items(), key=lambda each: (-len(each[1]), each[1]))
    return [(str(len(nodes)), *fact, node_numbers(nodes)) for fact, nodes in ordered]


def _size(count: int) -> str:
    """Return a number of bytes as text for people: ``27.9 MB``."""
    value, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"


def _print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print *rows* as a table with *title* and bold headings; print nothing if *rows* is empty."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", justify="right" if column == "count" else "left")
    for row in rows:
        table.add_row(*map(printable, row))
    if not table.row_count:
        return
    is_free = sys.stdout.isatty() or "COLUMNS" in os.environ
    console = Console(width=None if is_free else 160, markup=False, emoji=False, highlight=False)
    with console.capture() as capture:
        console.print(Padding(table, (0, 0, 0, 2), expand=False))
    click.echo()
    click.secho(title, bold=True)
    click.echo("\n".join(map(str.rstrip, capture.get().splitlines())))
