"""Trials given to a delegate: which of them it takes, and what it makes of those."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from delegraph.delegation.capabilities import Claim
from delegraph.delegation.placement import NodePlacement
from delegraph.errors import DelegraphError
from delegraph.testing.conformance.differences import difference
from delegraph.testing.conformance.subject import Subject
from delegraph.testing.conformance.trials import (
    Outputs,
    Trial,
    all_answers,
    open_interpreter,
    trial_of,
)
from delegraph.testing.conformance.watching import PATTERN, KernelWatch, WatchedDelegate
from delegraph.testing.operator_case import OperatorCase
from delegraph.testing.operator_cases import cases

RANDOM_CASES = 40
"""Random cases of each maker that a claimed operator is tried with."""

ENOUGH = 20
"""Models that are claimed and taken, after which only those are tried that show something new."""

SEEDS = 12
"""How often that many are drawn, at most, until each claimed type is in one that is taken."""

SEEDS_FOR_FEATURES = 3
"""The same for features: not every operator can show every feature."""


@dataclass(frozen=True, eq=False)
class Attempt:
    """What a delegate makes of a trial.

    Attributes:
        trial: the model with the right results.
        is_claimed: whether a claim covers it.
        taken: names of the operators that the delegate took, of all subgraphs.
        reasons: why it left the nodes of the operator that the case is about.
        ran: whether a kernel of the delegate computed.
        error: what went wrong; empty for nothing.
        outputs: what came out; None without a result.
    """

    trial: Trial
    is_claimed: bool
    taken: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    ran: bool = False
    error: str = ""
    outputs: Outputs | None = None

    @property
    def is_taken(self) -> bool:
        """Whether the delegate took a node of the operator that the case is about."""
        return self.trial.case.op in self.taken


def attempt(subject: Subject, trial: Trial) -> Attempt:
    """Return what a new delegate makes of *trial*."""
    watch = KernelWatch(PATTERN)
    found = Attempt(trial, subject.claims(trial.case.op, trial.types, trial.features))
    try:
        with open_interpreter(trial.case, WatchedDelegate(subject.make(), watch)) as interpreter:
            nodes = interpreter.placement.nodes
            found = replace(
                found,
                taken=tuple(node.op for node in nodes if node.delegate is not None),
                reasons=_reasons(nodes, trial.case.op),
            )
            outputs = all_answers(interpreter, trial.case) if found.taken else None
    except DelegraphError as error:
        return replace(found, error=f"{type(error).__name__}: {error}")
    return replace(found, ran=watch.evaluations > 0, outputs=outputs)


def _reasons(nodes: Sequence[NodePlacement], op: str) -> tuple[str, ...]:
    return tuple(str(r) for node in nodes if node.op == op for r in node.rejections.values())


def wrong(subject: Subject, found: Attempt) -> str:
    """Return what is wrong with the result of an attempt; empty for nothing."""
    if found.error or found.outputs is None:
        return found.error
    return difference(found.outputs, found.trial, subject.capabilities)


def still_wrong(subject: Subject, case: OperatorCase) -> bool:
    """Return whether a case that the delegate claims and takes comes out wrong."""
    trial = trial_of(case)
    if trial is None or not subject.claims(case.op, trial.types, trial.features):
        return False
    found = attempt(subject, trial)
    return (found.is_taken or bool(found.error)) and bool(wrong(subject, found))


@cache
def attempts(subject: Subject, op: str) -> tuple[Attempt, ...]:
    """Return the attempts of the cases of an operator, the author's own ones first.

    Cases of types that no claim names are many, and only asked about: one of each will do. While a
    claimed type or feature is in no model that the delegate takes, more cases are drawn.
    """
    found = _Attempts(subject, op)
    found.try_all(case for case in subject.cases if case.op == op)
    for seed in range(SEEDS):
        found.try_all(cases(op, seed=seed, count=RANDOM_CASES), only_missing=seed > 0)
        complete = found.has_enough and not found.missing
        if complete or (seed >= SEEDS_FOR_FEATURES and not found.misses_types):
            break
    return tuple(found.made)


class _Attempts:
    """Attempts of one operator, as they are made.

    Attributes:
        made: those so far.
        missing: types and features that a claim names and no model taken for it shows.
    """

    def __init__(self, subject: Subject, op: str) -> None:
        self._subject = subject
        self._claims = [claim for claim in subject.capabilities.claims if op in claim.operators]
        self._types = {type for claim in self._claims for type in claim.types}
        self._other_types: set[tuple[str, ...]] = set()
        self._seen: set[str] = set()
        self.missing = {(c, name) for c in self._claims for name in (*c.types, *c.features)}
        self.made: list[Attempt] = []

    @property
    def misses_types(self) -> bool:
        """Whether a claimed type is missing of which there are models."""
        return any(name in claim.types and name in self._seen for claim, name in self.missing)

    @property
    def has_enough(self) -> bool:
        """Whether there are :data:`ENOUGH` that the delegate claims and takes."""
        return sum(each.is_claimed and each.is_taken for each in self.made) >= ENOUGH

    def try_all(self, given: Iterable[OperatorCase], *, only_missing: bool = False) -> None:
        """Add the attempts of cases; once there are enough, if wanted only of what is missing."""
        for case in given:
            types = case.types()
            is_claimed = self._types.issuperset(types)
            trial = trial_of(case) if is_claimed or types not in self._other_types else None
            if trial is None:
                continue
            self._seen |= trial.types
            if only_missing and self.has_enough and not self._shown(trial) & self.missing:
                continue
            if not is_claimed:
                self._other_types.add(types)
            made = attempt(self._subject, trial)
            self.made.append(made)
            if made.is_taken:
                self.missing -= self._shown(trial)

    def _shown(self, trial: Trial) -> set[tuple[Claim, str]]:
        """Return what a trial shows of each claim that covers it."""
        op, types, features = trial.case.op, trial.types, trial.features
        covering = [claim for claim in self._claims if claim.covers(op, types, features)]
        return {(claim, name) for claim in covering for name in types | features}
