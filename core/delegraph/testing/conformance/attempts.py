"""Attempts: results of trials (models with right results) on a delegate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from delegraph.delegation.node_traits import NodeTraits
from delegraph.delegation.placement import NodePlacement
from delegraph.errors import DelegraphError
from delegraph.testing.conformance.claim_evidence import (
    Demand,
    at_versions,
    demands,
    is_near,
    may_show,
    shown,
)
from delegraph.testing.conformance.differences import difference
from delegraph.testing.conformance.kernel_observer import PATTERN, KernelWatch, WatchedDelegate
from delegraph.testing.conformance.run_reports import remembered
from delegraph.testing.conformance.subject import Subject
from delegraph.testing.conformance.trials import (
    Outputs,
    Trial,
    all_answers,
    kept_cases,
    kept_trial,
    open_interpreter,
    trial_of,
)
from delegraph.testing.operator_case import OperatorCase


@dataclass(frozen=True, eq=False)
class Attempt:
    """Result of a trial on a delegate.

    Attributes:
        trial: the model with its right results.
        is_claimed: whether one of the delegate's claims covers the model.
        taken: operator names of the nodes that the delegate claimed, in all subgraphs.
        reasons: reasons why the delegate rejected nodes of the case's operator.
        ran: whether a kernel of the delegate ran.
        error: text of the error; empty if there was none.
        outputs: the computed outputs; None after an error.
        is_deadly: whether an earlier attempt killed its process, so that the trial was not
            repeated.
    """

    trial: Trial
    is_claimed: bool
    taken: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    ran: bool = False
    error: str = ""
    outputs: Outputs | None = None
    is_deadly: bool = False

    @property
    def is_taken(self) -> bool:
        """Whether the delegate claimed a node of the case's operator."""
        return self.trial.case.op in self.taken


def attempt(subject: Subject, trial: Trial) -> Attempt:
    """Run *trial* on a new delegate object; return the nodes that it claimed, and its results.

    Args:
        subject: the delegate under test.
        trial: a model with its inputs and right results.
    """
    watch = KernelWatch(PATTERN)
    found = Attempt(trial, subject.claims(trial.forms, trial.features))
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


def careful_attempt(subject: Subject, trial: Trial) -> Attempt:
    """Run *trial* on a new delegate object, unless this model has killed an earlier process.

    The result says what the delegate claimed and computed; for a model that killed a process, it
    has an error.
    """
    with remembered(subject.name, "attempt", trial.case) as death:
        if death:
            is_claimed = subject.claims(trial.forms, trial.features)
            error = f"the delegate {subject.name!r} {death}"
            return Attempt(trial, is_claimed, error=error, is_deadly=True)
        return attempt(subject, trial)


def _reasons(nodes: Sequence[NodePlacement], op: str) -> tuple[str, ...]:
    return tuple(str(r) for node in nodes if node.op == op for r in node.rejections.values())


def wrong(subject: Subject, found: Attempt) -> str:
    """Text that describes errors in the result of *found*; empty if it is right.

    Args:
        subject: the delegate under test, with its tolerances.
        found: result of running a model on the delegate.
    """
    if found.error or found.outputs is None:
        return found.error
    return difference(found.outputs, found.trial, subject.capabilities)


def still_wrong(subject: Subject, case: OperatorCase) -> bool:
    """Whether the delegate claims nodes of *case* and computes wrong results."""
    trial = trial_of(case)
    if trial is None or not subject.claims(trial.forms, trial.features):
        return False
    found = attempt(subject, trial)
    return (found.is_taken or bool(found.error)) and bool(wrong(subject, found))


Attempted = Callable[[Trial], Attempt]
"""Function that makes the attempt for a trial."""


def drawn(
    subject: Subject, op: str, make: Attempted, known: Iterable[Attempt] = ()
) -> tuple[Attempt, ...]:
    """Run the cases of one operator on a delegate; return an attempt for each.

    The author's own cases are tried first. Cases of types that no claim names are only offered to
    the delegate, one for each type. Random cases follow until models that the delegate accepts show
    each claimed type, version and feature. A model that kills its process ends the search, because
    similar models would do the same.

    Args:
        subject: the delegate under test.
        op: name of the operator.
        make: function that runs a trial (a case with its right results) on the delegate.
        known: results of cases that were already tried; types that they do not show are not
            searched.
    """
    found, effort = _Attempts(subject, op, make, known), subject.effort
    found.try_all(case for case in subject.cases if case.op == op)
    for seed in range(effort.seeds):
        given = at_versions(found.claims, kept_cases(op, seed, effort.random_cases))
        found.try_all(given, only_missing=seed > 0 or not effort.enough)
        if (
            found.is_over
            or found.is_complete
            or (seed >= effort.seeds_for_others and not found.misses_types)
        ):
            break
    return tuple(found.made)


class _Attempts:
    """Attempts on models of one operator, and the demands of claims that no model has shown yet.

    Attributes:
        claims: claims of the operator.
        made: the attempts so far.
        missing: demands of claims that no model claimed by the delegate shows yet.
    """

    def __init__(
        self, subject: Subject, op: str, make: Attempted, known: Iterable[Attempt]
    ) -> None:
        self._subject = subject
        self._make = make
        self.claims = [claim for claim in subject.capabilities.claims if op in claim.operators]
        self._other_forms: set[tuple[NodeTraits, tuple[str, ...]]] = set()
        self._tried: Counter[tuple[tuple[str, str], ...]] = Counter()  # number of attempts by types
        self._seen: set[Demand] = set()
        wanted = (demand for claim in self.claims for demand in demands(claim))
        self.missing = {each for each in wanted if each.is_type or subject.effort.shows_all}
        self.made: list[Attempt] = []
        for each in known:
            if not self.is_over:
                self._add(each)
        if self.made:  # earlier draws found no others
            self.missing &= {each for made in self.made for each in self._shown(made.trial)}

    @property
    def is_over(self) -> bool:
        """Whether the last attempt killed a process, or there were too many errors."""
        errors = sum(bool(each.error) for each in self.made)
        return bool(errors) and (self.made[-1].is_deadly or errors >= self._subject.effort.errors)

    @property
    def is_complete(self) -> bool:
        """Whether enough models were tried, and they show everything that the claims list."""
        return self.has_enough and not self.missing

    @property
    def misses_types(self) -> bool:
        """Whether a claimed type was not shown yet, although models of the type exist."""
        return any(demand.is_type and demand in self._seen for demand in self.missing)

    @property
    def has_enough(self) -> bool:
        """Whether enough of the tried models are covered by claims and accepted by the delegate."""
        taken = sum(each.is_claimed and each.is_taken for each in self.made)
        return taken >= self._subject.effort.enough

    def try_all(self, given: Iterable[OperatorCase], *, only_missing: bool = False) -> None:
        """Run each of the cases *given* on the delegate, and store the attempts.

        With *only_missing*, a case is run only if it shows a demand of the claims that no earlier
        model has shown.
        """
        for case in given:
            if self.is_over or (only_missing and self.is_complete):
                return
            is_for_missing = only_missing and self.has_enough
            if is_for_missing and not self._may_show_missing(case):
                continue
            trial = self._worth_trying(case)
            if trial is None:
                continue
            found = self._shown(trial)
            self._seen |= found
            if is_for_missing and not found & self.missing:
                continue
            self._add(self._make(trial))

    def _may_show_missing(self, case: OperatorCase) -> bool:
        """Whether *case* may show a demand of the claims that no earlier model has shown.

        The result is False if only types are missing that the case lacks, or if enough models were
        already run in this search.
        """
        if not all(each.is_type for each in self.missing):
            return True
        if self.missing.isdisjoint({d for claim in self.claims for d in may_show(claim, case)}):
            return False
        types, patience = case.declared_types(), self._subject.effort.patience
        if self._tried[types] >= patience or self._tried.total() >= 2 * patience:
            return False
        self._tried[types] += 1
        return True

    def _add(self, made: Attempt) -> None:
        self.made.append(made)
        if made.is_taken:
            self.missing -= self._shown(made.trial)

    def _shown(self, trial: Trial) -> set[Demand]:
        return {demand for claim in self.claims for demand in shown(claim, trial)}

    def _worth_trying(self, case: OperatorCase) -> Trial | None:
        """Return *case* with its expected outputs; None if it need not be run on the delegate.

        A case need not be run if no claim covers its types, version and activation, and a case with
        the same three was run before.
        """
        form = case.input_form()
        if any(claim.misfit(form) is None for claim in self.claims):
            return kept_trial(case)
        if not any(is_near(claim, form) for claim in self.claims):
            form = replace(form, version=1)
        key = form, case.output_types()
        trial = None if key in self._other_forms else kept_trial(case)
        if trial is not None and "empty" not in trial.features:  # which many delegates leave
            self._other_forms.add(key)
        return trial
