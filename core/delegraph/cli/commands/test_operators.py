"""``delegraph test-operators``: runs generated models with and without a delegate."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from delegraph.cli.answers.printing import (
    console,
    heading,
    print_json,
    print_paragraph,
    print_table,
)
from delegraph.cli.answers.progress_bar import shown_progress
from delegraph.cli.failure import CheckFailed
from delegraph.cli.options.arguments import complete_delegate, diagnosis_options, json_option
from delegraph.cli.options.output_files import OutputFile
from delegraph.cli.options.sections import SectionedCommand
from delegraph.quantities import few_of, plural

if TYPE_CHECKING:
    from rich.console import Console

    from delegraph.testing.badge import Badge
    from delegraph.testing.sweep.findings import Finding
    from delegraph.testing.sweep.judging import Fault
    from delegraph.testing.sweep.sweep import Plan, SweepResult

_SWEEP = "Delegraph sweep"
"""Label of the badge."""

_MEANINGS = {
    "different": "wrong results, see below",
    "failed": "a crash, a hang, or an error of one side alone, see below",
    "equal": "the results are those of the reference",
    "not taken": "the delegate took no node; models also try what it does not claim",
    "refused": "invalid models: both sides give an error, as they should",
    "not judged": "no right answer is known or promised",
}
"""Mapping from an outcome of models to its meaning."""

_COMPARED = ("different", "failed", "equal")
"""Outcomes of models whose results were compared, or should have been."""

MOST_SHOWN = 10
"""Largest number of groups of findings that are printed, and of others in a group."""

_AROUND_VALUES = re.compile(r"^invoke \d+, (?:.*? first at [^:]*: )?| \(allowed: .*")
"""Pattern of what is around the wrong and the right value in the text of a difference."""

_BRIEF = 100
"""Number of characters of a fault's text in a line about another finding of a group."""

_FAULTS = {
    "bare text": "an error of Python or NumPy",
    "computes alone": "the reference gives an error",
    "exception": "an error of none of Delegraph's classes",
    "other words": "both sides give errors, with different texts",
    "refuses alone": "the reference computes",
}
"""Mapping from a kind of fault whose name says too little to its meaning."""


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
    help="Begin no case after it.  [default: 1, or none with --cases]",
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
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=30,
    show_default=True,
    metavar="SECONDS",
    help="End a case that takes longer, which is a finding.",
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
    takes no node. Ctrl-C ends the cases, prints the findings so far, and gives 130.
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
    if result.is_interrupted:
        raise KeyboardInterrupt
    if result.differences:
        raise CheckFailed(f"{plural(len(result.differences), 'finding')}")
    if result.is_idle:
        models = plural(result.cases, "model")
        advice = "" if result.plan.operators else "; --operator OP tries an operator that it takes"
        raise CheckFailed(
            f"the delegate takes no node of {models}: nothing of it is tested{advice}"
        )


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

    found, models = len(result.differences), plural(result.computed + result.failed, "model")
    if found:
        return Badge(f"{plural(found, 'finding')} in {models}", "failed", _SWEEP)
    if result.is_idle:
        return Badge("nothing tested", "failed", _SWEEP)
    return Badge(f"no finding in {models}", "passed", _SWEEP)


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
        case_seconds=given["timeout"],
        folder=given["output"],
    )
    with shown_progress() as progress:
        return run_sweep(plan, progress)


def print_sweep(out: Console, result: SweepResult) -> None:
    """Print the verdict, the outcomes, also by operator, and findings with their commands."""
    out.print(_verdict(result), style="bold")
    for sentence in _tried(result):
        print_paragraph(out, sentence)
    rows = dict(sorted(result.counts.items()))
    total = Counter[str]()
    for row in rows.values():
        total += row
    outcomes = [name for name in _MEANINGS if total[name]]
    meanings = [(total[name], name, _MEANINGS[name]) for name in outcomes]
    out.print()
    print_table(out, ("models", "outcome", "meaning"), meanings, right=("models",))
    for caution in result.cautions:
        print_paragraph(out, f"caution: {caution}")
    if len(tested := _tested(rows)) > 1:
        heading(out, "By operator")
        cells = [(op, *(row[name] for name in outcomes)) for op, row in tested.items()]
        print_table(out, ("operator", *outcomes), cells, right=outcomes)
    if result.findings:
        _print_findings(out, result)


def _verdict(result: SweepResult) -> str:
    delegate, computed = result.plan.comparison.delegate, plural(result.computed, "model")
    if result.differences:
        wrong = result.failed + sum(row["different"] for row in result.counts.values())
        models = plural(result.computed + result.failed, "model")
        findings = plural(len(result.differences), "finding")
        return f"{delegate} fails in {wrong} of {models}: {findings}"
    if result.is_idle:
        return f"{delegate} is not tested: it takes no node of {plural(result.cases, 'model')}"
    once = plural(len(result.findings), "finding")
    more = f"; {once} not repeated in a new process" if result.findings else ""
    return f"{delegate} computed {computed}, all as expected{more}"


def _tried(result: SweepResult) -> Iterator[str]:
    """Yield sentences about the models, and about the nodes that the delegate took."""
    rate = result.cases / max(result.seconds, 1e-9)
    yield f"{plural(result.cases, 'model')}, seed {result.plan.seed}, {rate:.0f} a second"
    if result.is_interrupted:
        yield "interrupted: no more models were tried, and findings may be larger than need be"
    if result.taken:
        nodes = plural(sum(result.taken.values()), "node")
        ordered = sorted(result.taken.items(), key=lambda row: -row[1])
        yield f"it took {nodes}: {few_of([f'{op} {count}' for op, count in ordered])}"
    if result.plan.is_asked:
        yield _asked(result.plan)


def _asked(plan: Plan) -> str:
    """Sentence about a delegate without claims, which was asked what it takes."""
    begin = "it declares no claims"
    if not plan.claims:
        return (
            f"{begin}, and took none of the models it was asked about, or did not answer in time: "
            "all kinds are tried; --operator OP names some"
        )
    taken = sorted({op for claim in plan.claims for op in claim.operators})
    where = " of these operators" if plan.operators else ""
    return f"{begin}; asked about models{where}, it takes {few_of(taken)}: only these are tried"


def _tested(rows: Mapping[str, Counter[str]]) -> dict[str, Counter[str]]:
    """Rows of operators whose results were compared, and one row for all others."""
    shown = {op: row for op, row in rows.items() if any(map(row.get, _COMPARED))}
    others = [row for op, row in rows.items() if op not in shown]
    if others:
        shown[plural(len(others), "other")] = sum(others, Counter[str]())
    return shown


def _print_findings(out: Console, result: SweepResult) -> None:
    heading(out, "Findings")
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in result.findings:
        groups.setdefault((finding.fault.kind, _place(finding)), []).append(finding)
    ordered = sorted(groups.values(), key=lambda found: -sum(each.count for each in found))
    for found in ordered[:MOST_SHOWN]:
        _print_group(out, sorted(found, key=lambda each: len(each.model)), result.plan)
    hidden = [finding for found in ordered[MOST_SHOWN:] for finding in found]
    if hidden:
        print_paragraph(out, f"and {plural(len(hidden), 'more finding')}; --json lists them")
    folder = result.plan.folder
    out.print()
    if folder is None:
        out.print("-o FOLDER writes the models of the findings, with their inputs")
    else:
        out.print(f"written to {folder}")


def _place(finding: Finding) -> str:
    """Text that is equal for findings with one cause: a place in the code, an error, operators."""
    fault = finding.fault
    if fault.kind == "differs":
        return " ".join(sorted({*re.sub(r"\([^)]*\)", "", finding.model).split()}))
    return fault.where or re.sub(r"\d+", "", fault.detail)


def _print_group(out: Console, found: Sequence[Finding], plan: Plan) -> None:
    """Print the first finding of a group, and a line for each of the others."""
    finding, *more = found
    _print_finding(out, finding, plan.command)
    if plan.folder is not None:
        out.print(f"    saved: {plan.folder / finding.name}.tflite", soft_wrap=True)
    if more:
        cases = plural(sum(each.count for each in more), "case")
        same = "of these operators" if finding.fault.kind == "differs" else "of this cause"
        ordered = sorted(more, key=lambda each: -each.count)
        print_paragraph(out, f"{plural(len(more), 'more finding')} {same}, {cases}:", indent=4)
        for each in ordered[:MOST_SHOWN]:
            text = f"{_model(each)}: {_brief(each.fault)}, --first {each.numbers[0]}"
            print_paragraph(out, text, indent=6)
        if (hidden := len(more) - MOST_SHOWN) > 0:
            print_paragraph(out, f"and {hidden} more; --json lists them", indent=6)


def _brief(fault: Fault) -> str:
    """Wrong and right value of a fault, or its first words."""
    text = _AROUND_VALUES.sub("", " ".join(fault.detail.split()))
    return text if len(text) <= _BRIEF else f"{text[:_BRIEF]} ..."


def _print_finding(out: Console, finding: Finding, command: str) -> None:
    from delegraph.testing.sweep.case_facts import fact_lines

    kind, told = finding.fault.kind, finding.described(command)
    meaning = f" ({_FAULTS[kind]})" if kind in _FAULTS else ""
    state = ", not repeated in a new process" if finding.state == "not repeated" else ""
    cases = plural(finding.count, "case")
    print_paragraph(out, f"{_model(finding)}: {kind}{meaning}, {cases}{state}")
    print_paragraph(out, " ".join(finding.fault.detail.split()), indent=4)
    if finding.fault.where:
        print_paragraph(out, f"in {finding.fault.where}", indent=4)
    for line in fact_lines(finding.case):
        print_paragraph(out, line, indent=4)
    out.print(f"    again: {told['reproduce']}", soft_wrap=True)  # whole lines can be copied


def _model(finding: Finding) -> str:
    """Operators of a finding's model; equal neighbours are one, with their number."""
    from delegraph.testing.sweep.findings import nodes_of

    nodes = [(node, len(list(equal))) for node, equal in groupby(nodes_of(finding.case.content))]
    return " ".join(f"{node} x{n}" if n > 1 else node for node, n in nodes) or finding.model
