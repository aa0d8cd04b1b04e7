"""Check of the kit that runs a sweep of generated models."""

from __future__ import annotations

import os
from dataclasses import replace
from unittest import SkipTest

from delegraph.testing.conformance.run_reports import working
from delegraph.testing.conformance.subject import Subject
from delegraph.testing.sweep.comparison import Comparison
from delegraph.testing.sweep.generator import sweep_operators
from delegraph.testing.sweep.sweep import Plan, SweepResult, run_sweep

SHOWN = 5
"""Largest number of findings in the message of a failure; all findings are saved."""


def sweep_finds_nothing(subject: Subject, minutes: float, seed: int) -> None:
    """Check that no generated model of a claimed operator is wrong, crashes or is rejected.

    Raises:
        AssertionError: there are findings; each is saved.
        KeyboardInterrupt: the sweep was interrupted.
        SkipTest: there are no cases of the claimed operators.
    """
    operators = tuple(op for op in subject.operators if op in set(sweep_operators()))
    if not operators:
        raise SkipTest("there are no generated models for its claims")
    comparison = Comparison(subject.address or subject.name, make=subject.make)
    plan = Plan(
        replace(comparison, promised=subject.capabilities),
        seed=seed,
        seconds=minutes * 60,
        operators=operators,
        jobs=os.cpu_count() or 1,
        folder=subject.folder,
    )
    result = run_sweep(plan, lambda what, done, total: working())
    if result.is_interrupted:
        raise KeyboardInterrupt
    if result.differences:
        raise AssertionError(_message(result, bool(subject.address)))


def _message(result: SweepResult, is_installed: bool) -> str:
    lines = [f"{len(result.differences)} findings in {result.cases} cases:"]
    for finding in result.differences[:SHOWN]:
        again = finding.described(result.command)["reproduce"]
        lines += [
            f"{finding.model}: {finding.fault.kind} ({finding.count} cases)",
            f"  {finding.fault.detail}",
            f"  saved: {result.plan.folder}/{finding.name}.tflite",
            f"  again: {again if is_installed else f'--delegate-seed {result.plan.seed}'}",
        ]
    hidden = len(result.differences) - SHOWN
    return "\n".join([*lines, *([f"and {hidden} more"] if hidden > 0 else [])])
