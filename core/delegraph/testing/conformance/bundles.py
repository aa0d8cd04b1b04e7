"""Bundles: models of many independent cases, so that a slow delegate compiles only once.

A case whose result is right in a bundle counts as right. All other cases are tried alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

from delegraph.errors import DelegraphError
from delegraph.testing.conformance.attempts import Attempt, careful_attempt, drawn, wrong
from delegraph.testing.conformance.composition import Composition
from delegraph.testing.conformance.kernel_observer import PATTERN, KernelWatch, WatchedDelegate
from delegraph.testing.conformance.run_reports import remembered
from delegraph.testing.conformance.subject import Subject
from delegraph.testing.conformance.trials import Trial, open_interpreter, trial_of
from delegraph.testing.outputs import outputs_of

_FEW = 4
"""Largest number of parts of a failing bundle that is not split; its parts are tried alone."""


@cache
def attempts(subject: Subject, op: str) -> tuple[Attempt, ...]:
    """Run the cases of the operator *op* on the delegate; return an attempt for each.

    See :func:`drawn` for the choice of cases.
    """
    make = partial(careful_attempt, subject)
    if subject.effort.bundle == 1:
        return drawn(subject, op, make)
    right = _bundled(subject)
    trials = (made.trial for made in _assumed_attempts(subject, op))
    return drawn(subject, op, make, (right.get(trial) or make(trial) for trial in trials))


@cache
def _assumed_attempts(subject: Subject, op: str) -> tuple[Attempt, ...]:
    """Return attempts at cases of *op*, without running them on the delegate.

    :func:`drawn` chooses the cases. The delegate is assumed to accept every case that its claims
    cover.
    """

    def assumed(trial: Trial) -> Attempt:
        is_claimed = subject.claims(trial.forms, trial.features)
        return Attempt(trial, is_claimed, taken=(op,) if is_claimed else ())

    return drawn(subject, op, assumed)


@cache
def _bundled(subject: Subject) -> dict[Trial, Attempt]:
    """Return the results of all cases that the delegate computes right in joined models."""
    first = (made for op in subject.operators for made in _assumed_attempts(subject, op))
    parts = [made.trial for made in first if made.is_claimed and may_be_part(made.trial)]
    size = max(subject.effort.bundle, -(-len(parts) // subject.effort.bundles))
    return {made.trial: made for made in right_in_bundles(subject, parts, size)}


def right_in_bundles(subject: Subject, parts: Sequence[Trial], size: int) -> Iterator[Attempt]:
    """Join trials to larger models (bundles), run them, and yield the right results by trial.

    A bundle that the delegate cannot compute is split into halves, so that one bad part costs
    little time. *parts* are claimed trials that :func:`may_be_part` allows; *size* of them make a
    bundle.
    """
    for start in range(0, len(parts), size):
        some = parts[start : start + size]
        made = _Bundle.of(some).attempts(subject)
        if made is not None:
            yield from made
        elif len(some) > _FEW:
            yield from right_in_bundles(subject, some, -(-len(some) // 2))


def may_be_part(trial: Trial) -> bool:
    """Whether the model of *trial* can be joined with others to one model."""
    case = trial.case
    return (
        len(case.steps) == 1
        and len(case.records.subgraphs or ()) == 1
        and case.reference is None
        and not case.is_random
        and not trial.features & {"dynamic-shapes", "empty"}
    )


@dataclass(frozen=True)
class _Bundle:
    """A model that joins the models of several trials, which share no tensors.

    Attributes:
        parts: the trials, each with its own model.
        nodes: index of the first node of each part, and the number of all nodes.
        whole: trial of the whole model; None if Delegraph rejects it.
    """

    parts: Sequence[Trial]
    nodes: Sequence[int]
    whole: Trial | None

    @classmethod
    def of(cls, parts: Sequence[Trial]) -> _Bundle:
        model, nodes = Composition(), [0]
        ends: list[int] = []
        for part in parts:
            ends += model.add(part.case, {})
            nodes.append(model.num_operators)
        return cls(parts, nodes, trial_of(model.case(parts[0].case.op, ends)))

    def attempts(self, subject: Subject) -> list[Attempt] | None:
        """Run the joined model; return a result for each part that is claimed and computed right.

        The result is None if the bundle fails. It is empty if the bundle killed a process, because
        a search for the bad part would kill more processes.
        """
        if self.whole is None:
            return None
        with remembered(subject.name, "bundle", self.whole.case) as death:
            made = [] if death else self._made(subject, self.whole)
        if made is None:
            return None
        return [each for each in made if each.is_taken and not wrong(subject, each)]

    def _made(self, subject: Subject, whole: Trial) -> list[Attempt] | None:
        watch = KernelWatch(PATTERN)
        try:
            watched = WatchedDelegate(subject.make(), watch)
            with open_interpreter(whole.case, watched) as interpreter:
                taken = [node.delegate is not None for node in interpreter.placement.nodes]
                ops = [node.op for node in interpreter.placement.nodes]
                outputs = list(outputs_of(interpreter, whole.case.steps[0]))
        except DelegraphError:
            return None
        found = []
        for part, first, end in zip(self.parts, self.nodes, self.nodes[1:], strict=False):
            own, outputs = outputs[: len(part.outputs)], outputs[len(part.outputs) :]
            names = tuple(ops[i] for i in range(first, end) if taken[i])
            ran = watch.evaluations > 0
            found.append(Attempt(part, True, names, ran=ran, outputs=(tuple(own),)))
        return found
