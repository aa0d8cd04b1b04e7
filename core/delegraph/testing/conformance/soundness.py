"""Checks that a delegate claims exactly the nodes that its declared claims cover."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from unittest import SkipTest

from delegraph.delegation.capabilities import Claim
from delegraph.schema.enums import BuiltinOperator
from delegraph.testing.conformance.attempts import Attempt
from delegraph.testing.conformance.bundles import attempts
from delegraph.testing.conformance.claim_evidence import Demand, demands, shown
from delegraph.testing.conformance.placements import placings
from delegraph.testing.conformance.reproduction import explained
from delegraph.testing.conformance.subject import Subject
from delegraph.testing.conformance.trials import Trial

VALUES_ONLY = frozenset({"extreme-values"})
"""Features that only input values have, so that no delegate can reject a node for them."""


def claims_are_executed(subject: Subject, op: str) -> None:
    """Check that the delegate runs models of *op* that show everything its claims list.

    A claim lists types, versions, activations and features.
    """
    made = attempts(subject, op)
    if not made and op not in BuiltinOperator.__members__ and not subject.cases:
        raise SkipTest(f"models of the custom operator {op} come from its author's tests alone")
    if not made:
        raise AssertionError(
            f"claims {op}, and the kit has no model of it that can be compared; leave it out, or "
            "give the test class cases of your own, for a custom operator with references"
        )
    done = [each for each in made if each.is_claimed and each.is_taken]
    idle = [each for each in done if not each.ran and not each.error]
    if idle:
        raise AssertionError(
            f"takes {op} and never computes it: eval of its kernel was not called"
            + explained(subject, idle[0].trial.case, "never-runs")
        )
    for claim in subject.capabilities.claims:
        if op in claim.operators:
            _require_shown(subject, op, claim, made)


def _require_shown(subject: Subject, op: str, claim: Claim, made: Sequence[Attempt]) -> None:
    """Check that the delegate runs a model with each type and other property that *claim* lists.

    For every type a model must exist. Versions, activations and features need no model, because not
    every operator can show each of them.
    """
    covered = [(each, shown(claim, each.trial)) for each in made]
    of_all = subject.effort.shows_all
    for demand in (each for each in demands(claim) if each.is_type or of_all):
        tried = [each for each, found in covered if demand in found]
        if tried or (demand.is_type and of_all and not _shown_by_another(subject, demand)):
            _require_taken(subject, op, str(demand), tried)


def _shown_by_another(subject: Subject, demand: Demand) -> bool:
    """Whether the delegate runs a model of another operator with the claimed type *demand*."""
    return any(
        each.is_taken and demand in shown(demand.claim, each.trial)
        for op in demand.claim.operators
        for each in attempts(subject, op)
    )


def _require_taken(subject: Subject, op: str, what: str, tried: list[Attempt]) -> None:
    if not tried:
        raise AssertionError(
            f"claims {what} for {op}, and the kit has no such model that Delegraph's own kernel "
            "runs; leave it out, or give the test class cases of your own"
        )
    if not any(each.is_taken or each.error for each in tried):
        reasons = Counter(reason for each in tried for reason in each.reasons)
        why = "; ".join(f"{reason} ({count})" for reason, count in reasons.most_common(3))
        raise AssertionError(
            f"claimed but never taken: {what} for {op}; {len(tried)} models tried, "
            f"its reasons: {why or 'none'}"
            + explained(subject, tried[0].trial.case, "claimed-but-never-taken")
        )


def nothing_unclaimed_is_taken(subject: Subject) -> None:
    """Check that the delegate takes no node that its declared claims do not cover."""
    if not subject.operators:
        raise SkipTest("nothing is claimed")
    for made in (each for op in subject.operators for each in attempts(subject, op)):
        if made.is_taken:
            _require_claimed(subject, made.trial)
    for placing in placings(subject):
        op = placing.trial.case.op
        if any(node.delegate is not None and node.op == op for node in placing.nodes):
            _require_claimed(subject, placing.trial)


def _require_claimed(subject: Subject, trial: Trial) -> None:
    needed = trial.features - VALUES_ONLY
    if not subject.claims(trial.forms, needed):
        forms = " and ".join(sorted(map(str, trial.forms)))
        others = ", ".join(sorted(needed - {"activation"}))  # the form says which activation
        showing = f", with {others}" if others else ""
        raise AssertionError(
            f"takes forms that it does not claim: {forms}{showing}"
            + explained(subject, trial.case, "not-claimed")
        )
