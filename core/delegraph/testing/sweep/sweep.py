"""Runs a sweep: tries cases in processes, shrinks and saves findings, counts outcomes."""

from __future__ import annotations

import gc
import os
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delegraph.delegation.capabilities import Claim
from delegraph.errors import ArgumentError, DelegateError, did_you_mean
from delegraph.quantities import MOST_NAMED, few_of, plural
from delegraph.testing.sweep.comparison import Comparison
from delegraph.testing.sweep.findings import Finding, Findings, command_of, remove, save
from delegraph.testing.sweep.forked import run_forked
from delegraph.testing.sweep.generator import base_cases, sweep_case, sweep_operators
from delegraph.testing.sweep.judging import OUTCOMES
from delegraph.testing.sweep.shrinking import smallest
from delegraph.testing.sweep.sweep_case import SweepCase
from delegraph.tools.progress import Progress, untold

if TYPE_CHECKING:
    from delegraph.testing.sweep.workers import Limits

NO_END = 1 << 40
"""Number of cases of a sweep that ends only by its time limit."""


CASE_SECONDS = 30.0
"""Seconds that a case may take, unless a plan says otherwise."""


@dataclass(frozen=True)
class Plan:
    """Settings of a sweep.

    Attributes:
        comparison: comparison that judges each case.
        seed: seed that decides each case, together with its number.
        first: number of the first case.
        cases: number of cases; None for as many as time allows.
        seconds: number of seconds after which no case is begun; None means no limit.
        operators: operators that the user asked for; empty means those that the delegate claims.
        drawn: operators that cases are made of, found from *operators* and the claims when the
            sweep begins; empty means *operators*, or all that the sweep knows.
        claims: claims of the delegate, which most cases are within; empty for none.
        is_asked: whether the claims are observed, because the delegate declares none.
        jobs: number of processes.
        folder: folder for findings; None means that they are not written.
        case_seconds: seconds that a case may take; loading the delegate may take twice as long.
        processor_seconds: seconds of processor time that a case may take.
        shrink_seconds: seconds that the shrinking of a finding may take.
    """

    comparison: Comparison
    seed: int = 0
    first: int = 0
    cases: int | None = None
    seconds: float | None = 60.0
    operators: tuple[str, ...] = ()
    drawn: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    is_asked: bool = False
    jobs: int = 1
    folder: Path | None = None
    case_seconds: float = CASE_SECONDS
    processor_seconds: float = 15.0
    shrink_seconds: float = 10.0

    @property
    def command(self) -> str:
        """Command that repeats the sweep, without a case number.

        It names the few operators that a delegate takes which had to be asked, so that the command
        need not ask about others.
        """
        is_few = self.is_asked and len(self.drawn) <= MOST_NAMED
        command = command_of(self.comparison, self.seed, self.drawn if is_few else self.operators)
        is_usual = self.case_seconds == CASE_SECONDS
        return command if is_usual else f"{command} --timeout {self.case_seconds:g}"

    def no_longer_than_cases(self, seconds: float) -> float:
        """Return *seconds*, or those in which cases are begun if they are fewer."""
        return seconds if self.seconds is None else min(seconds, self.seconds)

    def case(self, number: int) -> SweepCase:
        """Return the case with a number, equal in any process."""
        operators = self.drawn or self.operators or sweep_operators()
        return sweep_case(self.seed, number, operators, self.claims)


@dataclass(frozen=True)
class SweepResult:
    """Result of a sweep.

    Attributes:
        plan: settings of the sweep.
        counts: mapping from an operator to its number of cases, also by outcome: ``different``,
            ``failed`` (a fault other than wrong results), ``equal``, ``not taken`` by the delegate,
            ``refused`` by both sides, ``not judged``.
        findings: the findings, with all their faults.
        seconds: duration of all cases, in seconds.
        taken: mapping from an operator to the number of its nodes that the delegate took.
        is_interrupted: whether an interrupt (Ctrl-C) ended the sweep.
    """

    plan: Plan
    counts: dict[str, Counter[str]]
    findings: tuple[Finding, ...]
    seconds: float
    taken: Mapping[str, int] = field(default_factory=dict)
    is_interrupted: bool = False

    @property
    def cases(self) -> int:
        """Number of tried cases."""
        return sum(row["cases"] for row in self.counts.values())

    @property
    def differences(self) -> tuple[Finding, ...]:
        """Findings that a new process can repeat."""
        return tuple(f for f in self.findings if f.state != "not repeated")

    @property
    def computed(self) -> int:
        """Number of valid models of which the delegate computed at least one node."""
        return sum(map(_computed, self.counts.values()))

    @property
    def failed(self) -> int:
        """Number of models with another fault than wrong results."""
        return sum(row["failed"] for row in self.counts.values())

    @property
    def is_idle(self) -> bool:
        """Whether the delegate took no node of any model, so that the sweep has not tested it."""
        return not (self.computed or self.findings or self.plan.comparison.is_core)

    @property
    def untested(self) -> tuple[str, ...]:
        """Operators without a model that the delegate computed, or failed in; sorted by name."""
        if self.plan.comparison.is_core:
            return ()
        rows = self.counts.items()
        return tuple(sorted(op for op, row in rows if not (_computed(row) or row["failed"])))

    @property
    def cautions(self) -> tuple[str, ...]:
        """Sentences about how little was tried; empty for Delegraph's own kernels."""
        found = []
        if not self.plan.comparison.is_core and 0 < self.computed * FEW_COMPUTED < self.cases:
            models = plural(self.cases, "model")
            found.append(f"the delegate computed only {self.computed} of {models}")
        if untested := self.untested:
            found.append(f"the delegate computed no model of {few_of(untested)}")
        return tuple(found)

    @property
    def command(self) -> str:
        """Command that repeats the sweep, without a case number."""
        return self.plan.command

    def to_json(self) -> dict[str, Any]:
        """Return the result as a dictionary for JSON."""
        plan = self.plan
        return {
            "delegate": plan.comparison.delegate,
            "runtime": plan.comparison.runtime,
            "default": plan.comparison.by_default,
            "seed": plan.seed,
            "first": plan.first,
            "cases": self.cases,
            "computed": self.computed,
            "taken": dict(self.taken),
            "cautions": list(self.cautions),
            "seconds": self.seconds,
            "operators": {op: dict(row) for op, row in self.counts.items()},
            "findings": [finding.described(self.command) for finding in self.findings],
            "is_interrupted": self.is_interrupted,
        }


FEW_COMPUTED = 10
"""Largest ratio of all models to computed models for which there is no caution."""


def _computed(row: Counter[str]) -> int:
    return row["different"] + row["equal"]


SHRINKING = 12
"""Number of findings for which there is time to shrink them; others stay as found."""

ASKING = 60.0
"""Seconds that questions to a delegate without claims may take."""

FEW = 1000
"""Largest number of cases for which each worker makes its own base cases."""


def run_sweep(plan: Plan, progress: Progress = untold) -> SweepResult:
    """Try the cases of a plan.

    An interrupt ends the sweep, once a case was tried; findings that are not shrunk stay as found.

    Raises:
        ArgumentError: an operator is unknown, or this system cannot fork processes.
        PluginError: the delegate is not installed, or cannot be used.
        DelegateError: loading the delegate killed a process, or took too long.
        KeyboardInterrupt: the sweep is interrupted before a case was tried.
    """
    require_runnable(plan.operators)
    from delegraph.testing.sweep.workers import Campaign, Limits

    # Engines start threads, which a fork does not survive.
    try:
        told = run_forked(plan.comparison.warm_up, 2 * plan.case_seconds)
    except ChildProcessError as error:
        raise DelegateError(f"{plan.comparison.delegate!r} cannot be loaded: {error}") from error
    is_asked = not (told or plan.comparison.is_core)
    if is_asked:
        told = _observed(plan, progress)
    drawn = _drawn(plan, {op for claim in told for op in claim["operators"]}, is_asked)
    claims = [_claim(claim) for claim in told if not {*drawn}.isdisjoint(claim["operators"])]
    plan = replace(plan, drawn=drawn, claims=tuple(claims), is_asked=is_asked)
    plan.case(plan.first)
    if plan.cases is None or plan.cases > FEW:
        _make_base_cases(plan, progress)
    gc.collect()
    was_frozen = gc.get_freeze_count() > 0
    gc.freeze()  # workers share present objects; their garbage collector can skip them
    processor = min(plan.processor_seconds, plan.case_seconds)
    limits = Limits(processor, elapsed=plan.case_seconds)
    operators = plan.drawn
    end = plan.first + (NO_END if plan.cases is None else plan.cases)
    campaign = Campaign(
        plan.comparison.judge,
        plan.case,
        numbers=range(plan.first, end),
        jobs=plan.jobs,
        limits=limits,
        groups=sweep_operators(),
    )
    findings, begin, seconds, is_interrupted = Findings(), time.monotonic(), 0.0, False
    try:
        for found in campaign.run(1e9 if plan.seconds is None else plan.seconds):
            if found is not None:
                new = findings.add(found.number, Finding(found.case, found.fault))
                if new is not None and plan.folder is not None:
                    save(new, plan.folder, plan.command)
            seconds = time.monotonic() - begin
            _tell(progress, plan, campaign.tried(), seconds, len(findings))
        shrink(findings, plan, limits, progress)
    except KeyboardInterrupt:
        if not campaign.tried():
            raise
        is_interrupted = True
    finally:
        if not was_frozen:
            gc.unfreeze()
    counts = {op: _row(campaign.counts_of(op)) for op in operators}
    kept = findings.merged()
    if plan.folder is not None:
        for finding in findings:
            if not any(finding is each for each in kept):
                remove(finding, plan.folder)
        for finding in kept:
            save(finding, plan.folder, plan.command)
    tried = {op: row for op, row in counts.items() if row["cases"]}
    taken = {op: n for op in sweep_operators() if (n := campaign.counts_of(op)["taken"])}
    return SweepResult(plan, tried, tuple(kept), seconds, taken, is_interrupted)


def _observed(plan: Plan, progress: Progress) -> list[dict[str, Any]]:
    """Return claims of what a delegate takes when asked, as JSON data.

    They are empty if a question ends or hangs its process: then cases show the fault.
    """
    progress("asking what the delegate takes", 0, None)
    operators = plan.operators or sweep_operators()
    try:
        seconds = plan.no_longer_than_cases(ASKING)
        return run_forked(lambda: plan.comparison.observed(operators, plan.seed), seconds)
    except ChildProcessError:
        return []


def _claim(told: Mapping[str, Any]) -> Claim:
    """Return the claim that *told*, its JSON data, describes; without its tolerance."""
    versions = None if told["versions"] is None else tuple(told["versions"])
    named: dict[str, Any] = {"versions": versions, "activations": told["activations"]}
    return Claim(
        told["operators"], told["types"] or (), *told["features"], **named, **told["roles"]
    )


def _drawn(plan: Plan, claimed: Collection[str], is_asked: bool) -> tuple[str, ...]:
    """Return the operators that the cases of a plan are drawn from.

    Args:
        plan: settings of the sweep.
        claimed: operators that the delegate claims or takes; empty if none is known.
        is_asked: whether the delegate takes these operators, and declares nothing.

    Raises:
        ArgumentError: the delegate claims none of the requested operators, or none that has cases.
    """
    if plan.operators:
        if claimed and not is_asked and not {*claimed} & {*plan.operators}:
            raise ArgumentError(
                f"{plan.comparison.delegate!r} claims none of {', '.join(plan.operators)}; "
                f"'delegraph plugins info {plan.comparison.delegate} --claims' shows its claims"
            )
        return plan.operators
    known = sweep_operators()
    if not claimed:
        return known
    if not (drawn := tuple(op for op in known if op in claimed)):
        delegate = plan.comparison.delegate
        raise ArgumentError(
            f"there are no cases of an operator that {delegate!r} claims; "
            f"'delegraph test {delegate}' tries it on cases of its own"
        )
    return drawn


def _make_base_cases(plan: Plan, progress: Progress) -> None:
    """Make the base cases of the plan's operators once for all workers, before they are forked."""
    operators = plan.drawn
    for done, op in enumerate(operators):
        progress(f"cases of {op}", done, len(operators))
        base_cases(op, plan.seed)


def require_runnable(operators: Sequence[str]) -> None:
    """Check that the system can fork processes, and that *operators* have cases."""
    if not hasattr(os, "fork"):
        raise ArgumentError(
            "a sweep forks processes, which this system cannot; run it on Linux or macOS, or in WSL"
        )
    known = sweep_operators()
    for op in operators:
        if op not in known:
            raise ArgumentError(
                f"there are no cases of an operator {op!r}{did_you_mean(op, known)}; operators "
                "are named as in the schema, such as CONV_2D"
            )


def shrink(findings: Findings, plan: Plan, limits: Limits, progress: Progress) -> None:
    """Make the cases of findings smaller; mark findings that a new process does not repeat."""
    from delegraph.testing.sweep.workers import Judge

    last = time.monotonic() + plan.no_longer_than_cases(SHRINKING * plan.shrink_seconds)
    for done, finding in enumerate(findings):
        if time.monotonic() > last:
            return
        progress(f"shrinking {finding.case.op}", done, len(findings))
        end = time.monotonic() + plan.shrink_seconds  # a repeated hang leaves no time
        with Judge(plan.comparison.judge, limits) as judge:
            again = judge(finding.case).fault
            if again is None or again.kind != finding.fault.kind:
                finding.state = "not repeated"
                continue
            case = finding.case
            if time.monotonic() < end:
                case = smallest(case, again, judge, end)
                again = judge(case).fault or again
            finding.case, finding.fault, finding.state = case, again, "shrunk"


def _tell(progress: Progress, plan: Plan, tried: int, seconds: float, findings: int) -> None:
    rate = tried / (seconds + 1e-9)
    found = f"{plural(findings, 'finding')} before equal ones are merged"
    text = f"{plural(tried, 'case')}, {rate:.0f} a second, {found}"
    if plan.cases is not None:
        progress(text, tried, plan.cases)
    else:
        progress(text, min(seconds, plan.seconds or seconds), plan.seconds)


def _row(found: Counter[str]) -> Counter[str]:
    """Return the counts of an operator's cases, from the counts *found* by outcome."""
    return Counter({
        "cases": sum(found[outcome] for outcome in OUTCOMES),
        "different": found["fault"] - found["failed"],
        "failed": found["failed"],
        "equal": found["equal"],
        "not taken": found["not taken"],
        "refused": found["refused"],
        "not judged": found["not judged"],
    })  # fmt: skip
