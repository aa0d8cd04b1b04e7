"""Checks that operators which are right alone are also right between TRANSPOSE nodes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from unittest import SkipTest

from delegraph.schema.enums import TensorType
from delegraph.testing.conformance.attempts import Attempt, careful_attempt, wrong
from delegraph.testing.conformance.bundles import attempts, may_be_part, right_in_bundles
from delegraph.testing.conformance.composition import fed_definitions
from delegraph.testing.conformance.numbers import smallest
from delegraph.testing.conformance.reproduction import rerun
from delegraph.testing.conformance.sample_models import first_step
from delegraph.testing.conformance.subject import Subject
from delegraph.testing.conformance.transposed import transposed
from delegraph.testing.conformance.trials import Trial, trials_of

TOGETHER = 32
"""Number of models that are joined into one model, which is compiled once."""


def transposed_are_right(subject: Subject) -> None:
    """Check that each operator gives right results between TRANSPOSE nodes.

    Raises:
        AssertionError: a result is wrong; the message names the operator.
        SkipTest: the delegate claims TRANSPOSE for none of the types of its other claims.
    """
    parts = [trial for op in subject.operators for trial in _drawn(subject, op)]
    if not parts:
        raise SkipTest("it claims no TRANSPOSE of the types of its other operators")
    size = len(parts) if subject.effort.bundles else TOGETHER
    right = {id(made.trial) for made in right_in_bundles(subject, parts, size)}
    alone = (careful_attempt(subject, part) for part in parts if id(part) not in right)
    failed = [made for made in alone if (made.is_taken or made.error) and wrong(subject, made)]
    if failed:
        raise AssertionError(_message(subject, failed))


def _drawn(subject: Subject, op: str) -> Iterator[Trial]:
    """Yield models of *op* with TRANSPOSE nodes before and after; the effort decides how many."""
    if op == "TRANSPOSE":
        return iter(())
    alone = (each for each in attempts(subject, op) if each.is_claimed and each.is_taken)
    right = (first_step(each.trial) for each in alone if not wrong(subject, each))
    fitting = (trial for trial in right if _can_be_transposed(subject, trial))
    cases = (case for trial in fitting for case in transposed(trial))
    found = (trial for case in cases for trial in trials_of([case]) if may_be_part(trial))
    return islice(found, subject.effort.transposed)


def _can_be_transposed(subject: Subject, trial: Trial) -> bool:
    """Whether the delegate claims TRANSPOSE for all types of the inputs."""
    claims = [claim for claim in subject.capabilities.claims if "TRANSPOSE" in claim.operators]
    claimed = {t for claim in claims for t in claim.types_of("input") or TensorType.__members__}
    types = {fed.definition.type.name for fed in fed_definitions(trial.case)}
    return bool(types) and types <= claimed and may_be_part(trial)


def _message(subject: Subject, failed: list[Attempt]) -> str:
    made = failed[0] if failed[0].is_deadly else smallest(subject, failed[0])
    op = made.trial.case.op
    others = ", ".join(sorted({each.trial.case.op for each in failed} - {op}))
    return (
        f"{op} is right alone and wrong between TRANSPOSEs: {wrong(subject, made)}; does the "
        "delegate, or its engine, move transpositions across it with a wrong axis?"
        + (f"\n  so are {others}" if others else "")
        + rerun(subject, made.trial.case, "transposed")
    )
