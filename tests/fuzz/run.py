"""Tries damaged copies of models on the core and on delegates, and keeps what goes wrong.

python tests/fuzz/run.py [--target NAME]... [--minutes M | --copies N] [--seed N] [--guided]
python tests/fuzz/run.py --reproduce FILE [--target NAME]

Exit code 1 when something was found. What counts as a finding: docs/fuzzing.md.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # before NumPy is imported; who imports this keeps their settings
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # workers must not inherit threads
    os.environ.setdefault("DELEGRAPH_NUMBA_GUARD", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from delegraph.testing.sweep.findings import Findings, remove
from delegraph.testing.sweep.judging import OUTCOMES
from delegraph.testing.sweep.workers import Campaign, Judge, Limits
from fuzz.copies import copy_with_number
from fuzz.findings import Finding, finding_of, load, save
from fuzz.reduction import reduced
from fuzz.targets import Target, targets

FOLDER = Path("fuzz-findings")
REDUCTION_SECONDS = 10.0
"""For one finding."""


def fuzz(
    target: Target, given: argparse.Namespace, findings: Findings, progress: Progress
) -> Counter[str]:
    """Run one campaign; return the number of copies by outcome."""
    task = progress.add_task(f"{target.name}: models", total=None)
    progress.refresh()
    models = target.models()
    target.warm_up()
    gc.collect()
    gc.freeze()  # workers share what is there; their collector need not look at it
    numbers = range(given.first, given.first + given.copies)
    campaign = Campaign(
        target.judge,
        lambda number: copy_with_number(models, given.seed, number),
        numbers=numbers,
        jobs=given.jobs,
        limits=_limits(given),
    )
    total = given.copies if given.copies < NO_END else None
    progress.update(task, total=total)
    start = time.monotonic()
    for found in campaign.run(given.minutes * 60):
        if found is not None:
            new = findings.add(found.number, finding_of(target, found))
            if new is not None:
                save(new, given.folder)
        mine = sum(finding.target == target.name for finding in findings)
        rate = campaign.tried() / (time.monotonic() - start + 1e-9)
        text = f"{target.name}: {campaign.tried()} copies, {rate:.0f} a second, {mine} findings"
        progress.update(task, completed=campaign.tried(), description=text)
        progress.refresh()
    return campaign.counts()


def fuzz_guided(target: Target, given: argparse.Namespace, findings: Findings) -> Counter[str]:
    """Run one campaign by libFuzzer, guided by coverage; libFuzzer reports the number of copies."""
    from fuzz.guided import guided  # needs atheris

    for found in guided(target, _limits(given), given.minutes * 60, given.seed):
        new = findings.add(found.number, finding_of(target, found))
        if new is not None:
            save(new, given.folder)
    return Counter()


def reduce_all(chosen: Sequence[Finding], given: argparse.Namespace, progress: Progress) -> None:
    """Shrink the models of findings, as far as time allows, and save them again."""
    end = time.monotonic() + given.reduce * 60
    task = progress.add_task("reducing", total=len(chosen))
    known = targets()
    for finding in chosen:
        if time.monotonic() < end:
            verify(finding, known[finding.target], _limits(given), REDUCTION_SECONDS)
            save(finding, given.folder)
        progress.advance(task)
        progress.refresh()


def verify(finding: Finding, target: Target, limits: Limits, seconds: float) -> None:
    """Try a finding in a new process and shrink its model, or note why it is no finding."""
    if target.in_litert and finding.fault.kind in ("crash", "hang"):
        with Judge(replace(target, only_host=True).judge, limits) as alone:
            # It may have left memory damaged when it ran the first time.
            if any(alone(finding.case).outcome == "not judged" for _ in range(3)):
                finding.state = "of LiteRT alone"
                return
    with Judge(target.judge, limits) as judge:
        again = judge(finding.case).fault
        if again is None or again.kind != finding.fault.kind:
            finding.state = "not repeated"
            return
        finding.case = reduced(finding.case, again, lambda copy: judge(copy).fault, seconds)
        finding.fault = judge(finding.case).fault or again
        finding.state = "reduced"


def reproduce(path: Path, given: argparse.Namespace) -> int:
    """Try a saved finding again and print the outcome."""
    name, copy, _ = load(path)
    target = targets()[given.target[0] if given.target else name]
    with Judge(target.judge, _limits(given)) as judge:
        ending = judge(copy)
    print(f"{target.name}: {ending.outcome}")
    if ending.fault is not None:
        print(
            f"{ending.fault.kind} in {ending.fault.where or 'unknown code'}: {ending.fault.detail}"
        )
    return int(ending.fault is not None)


def report(counts: dict[str, Counter[str]], findings: Sequence[Finding], console: Console) -> None:
    """Print a table of outcomes, and a table of findings."""
    table = Table("target", "copies", *OUTCOMES, "delegated", title="Copies")
    for name, found in counts.items():
        cells = [str(found[kind]) for kind in (*OUTCOMES, "delegated")]
        table.add_row(name, str(sum(found[kind] for kind in OUTCOMES)), *cells)
    console.print(table)
    if not findings:
        return
    table = Table(
        "target", "kind", "copies", "first", "where", "operators", "detail", title="Findings"
    )
    for f in findings:
        kind = f.fault.kind if f.is_ours else f"{f.fault.kind} ({f.state})"
        row = (f.target, kind, str(f.count), str(f.numbers[0]), f.fault.where, f.operators[:60])
        table.add_row(*row, f.fault.detail[:160])
    console.print(table)


NO_END = 1 << 40


def _limits(given: argparse.Namespace) -> Limits:
    return Limits(given.seconds, given.megabytes << 20)


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    known = list(targets())
    names = f"one of {', '.join(known)}; again for another; default: all"
    parser.add_argument("--target", action="append", choices=known, metavar="NAME", help=names)
    parser.add_argument("--minutes", type=float, default=10.0, help="for all targets together")
    parser.add_argument("--copies", type=int, default=NO_END, help="of each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first copy")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--guided", action="store_true", help="by coverage; needs atheris")
    parser.add_argument("--seconds", type=int, default=10, help="of processor, for a copy")
    parser.add_argument("--megabytes", type=int, default=2048, help="for a copy")
    parser.add_argument("--reduce", type=float, default=2.0, help="minutes for all findings")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where findings are saved")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the report for programs")
    parser.add_argument("--reproduce", type=Path, metavar="FILE", help="try a finding again")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line."""
    given = arguments(words)
    if given.reproduce is not None:
        return reproduce(given.reproduce, given)
    known = targets()
    chosen = [known[name] for name in given.target or known]
    given.minutes /= len(chosen)
    console = Console(width=None if sys.stdout.isatty() else 200)
    findings, counts = Findings(), {}
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    shown = Console(stderr=True)
    # Without a refreshing thread: workers are forked.
    with Progress(
        *columns, auto_refresh=False, console=shown, disable=not shown.is_terminal
    ) as progress:
        for target in chosen:
            if given.guided:
                counts[target.name] = fuzz_guided(target, given, findings)
            else:
                counts[target.name] = fuzz(target, given, findings, progress)
        as_found = list(findings)
        if as_found and given.reduce > 0:
            reduce_all(as_found, given, progress)
    merged = findings.merged()
    for finding in as_found:
        if finding not in merged:
            remove(finding, given.folder)
    report(counts, merged, console)
    if given.json is not None:
        write_json(given.json, counts, merged)
    print(f"seed {given.seed}")
    if merged:
        print(
            f"models and what they are fed: {given.folder}; python {sys.argv[0]} --reproduce FILE"
        )
    return int(any(finding.is_ours for finding in merged))


def write_json(path: Path, counts: dict[str, Counter[str]], findings: Sequence[Finding]) -> None:
    """Write the report for programs."""
    content: dict[str, Any] = {
        "counts": {name: dict(found) for name, found in counts.items()},
        "findings": [finding.described() for finding in findings],
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
