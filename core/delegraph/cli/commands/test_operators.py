"""``delegraph test-operators``: runs generated models with and without a delegate."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.answers.printing import console, heading, plural, print_json, print_table
from delegraph.cli.answers.progress_bar import shown_progress
from delegraph.cli.failure import CheckFailed
from delegraph.cli.options.arguments import complete_delegate, diagnosis_options, json_option
from delegraph.cli.options.output_files import OutputFile
from delegraph.cli.options.sections import SectionedCommand

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.testing.badge import Badge
    from delegraph.testing.sweep.sweep import SweepResult

_SWEEP = "Delegraph sweep"
"""Label of the badge."""


@click.command("test-operators", cls=SectionedCommand)
@click.argument(
    "delegate",
    metavar="[DELEGATE[:KEY=VALUE,...]]",
    required=False,
    shell_complete=complete_delegate,
)
@click.option(
    "-d",
    "--delegate",
    "named",
    metavar="NAME[:K=V,...]",
    shell_complete=complete_delegate,
    help="The same as the argument DELEGATE.",
)
@click.option(
    "--delegate-file",
    "file",
    metavar="FILE.py[:K=V]",
    help="Try the delegate of a Python file.",
)
@click.option(
    "--sweep",
    "minutes",
    type=click.FloatRange(0, min_open=True),
    metavar="MINUTES",
    help="Longest time.  [default: 1, or none with --cases]",
)
@click.option("--cases", type=click.IntRange(1), help="Number of cases to try.")
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="The same seed and number make the same case.",
)
@click.option(
    "--first",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Number of the first case.",
)
@click.option(
    "--operator",
    "operators",
    multiple=True,
    metavar="OP",
    help="Try this operator; repeatable.  [default: those claimed]",
)
@click.option("--jobs", type=click.IntRange(1), help="Processes.  [default: one a core]")
@click.option(
    "--runtime",
    type=click.Choice(["delegraph", "litert"]),
    default="delegraph",
    show_default=True,
    help="What applies the delegate.",
)
@click.option(
    "--default",
    "by_default",
    is_flag=True,
    help="Apply it as the default delegate, with the core's errors.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Write findings there, as .tflite, .npz and .txt.",
)
@click.option(
    "--badge",
    type=OutputFile(),
    metavar="FILE",
    help="Write a badge: FILE.svg, or FILE.json for shields.io.",
)
@json_option
@diagnosis_options
def command(
    delegate: str | None,
    named: str | None,
    file: str | None,
    as_json: bool,
    badge: str | None,
    **options: Any,
) -> None:
    """Try generated models on a delegate, and compare results.

    DELEGATE is an installed delegate, the delegate of a file FILE.py, or "core" for Delegraph's own
    kernels, which are compared with the official interpreter. Each case is a small model that is
    invoked and resized several times. Cases run in child processes, so a crash is a finding too.
    The command does not run on Windows. The exit code is 1 if something differs, or the delegate
    takes no node.
    """
    if badge is not None:
        from delegraph.testing.badge import require_badge_ending

        require_badge_ending(badge)
    result = _swept(_only(delegate, named, file), options)
    if badge is not None:
        _badge(result).write(badge)
    if as_json:
        print_json(result.to_json())
    else:
        print_sweep(console(), result)
    if result.differences:
        raise CheckFailed(f"{plural(len(result.differences), 'finding')}")
    if result.is_idle:
        models = plural(result.cases, "model")
        raise CheckFailed(f"the delegate takes no node of {models}: nothing of it is tested")


def _only(*given: str | None) -> str:
    """Return the delegate, which may be given in three ways.

    Raises:
        click.UsageError: none is given, or several.
    """
    delegates = [each for each in given if each is not None]
    if len(delegates) != 1:
        found = f"got {' and '.join(map(repr, delegates))}" if delegates else "none is given"
        raise click.UsageError(
            f"expected one delegate: DELEGATE, --delegate NAME or --delegate-file FILE.py; {found}"
        )
    return delegates[0]


def _badge(result: SweepResult) -> Badge:
    from delegraph.testing.badge import Badge

    found = len(result.differences)
    if found:
        return Badge(
            f"{plural(found, 'finding')} in {plural(result.cases, 'model')}", "failed", _SWEEP
        )
    return Badge(f"no finding in {plural(result.cases, 'model')}", "passed", _SWEEP)


def _swept(delegate: str, given: dict[str, Any]) -> SweepResult:
    from delegraph.testing.sweep.comparison import Comparison
    from delegraph.testing.sweep.sweep import Plan, run_sweep

    minutes = given["minutes"]
    if minutes is None and given["cases"] is None:
        minutes = 1.0
    plan = Plan(
        Comparison(delegate, given["runtime"], given["by_default"]),
        seed=given["seed"],
        first=given["first"],
        cases=given["cases"],
        seconds=None if minutes is None else minutes * 60,
        operators=tuple(dict.fromkeys(given["operators"])),
        jobs=given["jobs"] or os.cpu_count() or 1,
        folder=given["output"],
    )
    with shown_progress() as progress:
        return run_sweep(plan, progress)


def print_sweep(out: Console, result: SweepResult) -> None:
    """Print counts by operator, then the findings with the commands that repeat each one."""
    from delegraph.testing.sweep.sweep import COLUMNS

    columns = tuple(
        c for c in COLUMNS if c == "cases" or any(row[c] for row in result.counts.values())
    )
    rows = [(op, *(row[c] for c in columns)) for op, row in sorted(result.counts.items())]
    totals = (sum(row[c] for row in result.counts.values()) for c in columns)
    print_table(out, ("operator", *columns), [*rows, ("all", *totals)], right=columns)
    rate = result.cases / max(result.seconds, 1e-9)
    out.print()
    out.print(f"seed {result.plan.seed}, {rate:.0f} cases a second")
    if not result.findings:
        return
    heading(out, "Findings")
    for finding in result.findings:
        described = finding.described(result.command)
        times = plural(finding.count, "case")
        state = ", not repeated in a new process" if finding.state == "not repeated" else ""
        out.print(f"  {described['model']}: {finding.fault.kind} ({times}{state})")
        out.print(f"    {' '.join(finding.fault.detail.split())}")
        if finding.fault.where:
            out.print(f"    in {finding.fault.where}")
        out.print(f"    {described['reproduce']}")
    if result.plan.folder is not None:
        out.print()
        out.print(f"written to {result.plan.folder}")
