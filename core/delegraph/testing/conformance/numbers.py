"""Checks of a delegate's results against Delegraph's kernels or a reference."""

from __future__ import annotations

from collections import Counter
from unittest import SkipTest

from delegraph.testing.conformance.attempts import Attempt, attempt, still_wrong, wrong
from delegraph.testing.conformance.bundles import attempts
from delegraph.testing.conformance.reproduction import rerun
from delegraph.testing.conformance.run_reports import suspect
from delegraph.testing.conformance.subject import Subject
from delegraph.testing.conformance.trials import trial_of
from delegraph.tools.shrinking import shrunk


def results_are_right(subject: Subject, op: str) -> None:
    """Check the results of the models of *op* that the delegate claims and computes.

    Raises:
        AssertionError: a result is wrong; the smallest wrong model is saved.
        SkipTest: the delegate takes no model.
    """
    tried = _compared(subject, op)
    failed = [each for each in tried if wrong(subject, each)]
    if failed:
        made = failed[0] if failed[0].is_deadly else smallest(subject, failed[0])
        what = f"{op} of {' '.join(sorted(made.trial.types))}"
        if not made.is_deadly:
            what += f" comes out wrong in {len(failed)} of {len(tried)} models"
        label = "died" if made.is_deadly else "wrong"
        message = f"{what}: {wrong(subject, made)}"
        raise AssertionError(message + rerun(subject, made.trial.case, label))
    if not tried:
        raise SkipTest(f"no model of {op} is claimed and taken")


def smallest(subject: Subject, failed: Attempt) -> Attempt:
    """Make the failing model of *failed* smaller; return the result of the smallest failing model.

    A smaller model counts if it fails in the same way.
    """
    original, tries = failed.trial.case, subject.effort.tries
    case = shrunk(original, lambda simpler: still_wrong(subject, simpler), tries)
    suspect(subject.name, still_wrong, case, original)
    return attempt(subject, trial_of(case) or failed.trial)


def results_by_type(subject: Subject, op: str) -> dict[str, str]:
    """Return, for each type, how many models of *op* gave right results, as ``right/compared``."""
    compared: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for made in _compared(subject, op):
        compared.update(made.trial.types)
        if not wrong(subject, made):
            right.update(made.trial.types)
    return {type: f"{right[type]}/{compared[type]}" for type in sorted(compared)}


def _compared(subject: Subject, op: str) -> list[Attempt]:
    return [
        each for each in attempts(subject, op) if each.is_claimed and (each.is_taken or each.error)
    ]
