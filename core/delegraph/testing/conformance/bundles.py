"""Bundles: models of many cases side by side, so that a slow delegate compiles them all at once.

What comes out right there is right. Everything else is tried alone, as it is without bundles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial

from delegraph.errors import DelegraphError
from delegraph.testing.conformance.attempts import Attempt, careful_attempt, drawn, wrong
from delegraph.testing.conformance.composition import Composition, fed_definitions
from delegraph.testing.conformance.subject import Subject
from delegraph.testing.conformance.trials import Trial, answers, open_interpreter, trial_of
from delegraph.testing.conformance.watching import PATTERN, KernelWatch, WatchedDelegate
from delegraph.testing.conformance.witness import remembered


@cache
def attempts(subject: Subject, op: str) -> tuple[Attempt, ...]:
    """Return the attempts of the cases of an operator; see :func:`drawn`."""
    size = subject.effort.bundle
    known = [made for made in _bundled(subject) if made.trial.case.op == op] if size > 1 else []
    return drawn(subject, op, partial(careful_attempt, subject), known)


@cache
def _bundled(subject: Subject) -> tuple[Attempt, ...]:
    """Return attempts that came out right in bundles, of every operator."""
    assume = partial(_assumed, subject)
    first = [made for op in subject.operators for made in drawn(subject, op, assume)]
    parts = [made.trial for made in first if made.is_claimed and _may_be_part(made.trial)]
    size = subject.effort.bundle
    bundles = [_Bundle.of(parts[i : i + size]) for i in range(0, len(parts), size)]
    return tuple(made for bundle in bundles for made in bundle.attempts(subject))


def _assumed(subject: Subject, trial: Trial) -> Attempt:
    """Return the attempt of a delegate that takes what it claims; nothing runs."""
    is_claimed = subject.claims(trial.forms, trial.features)
    return Attempt(trial, is_claimed, taken=(trial.case.op,) if is_claimed else ())


def _may_be_part(trial: Trial) -> bool:
    case = trial.case
    return (
        len(case.steps) == 1
        and len(case.records.subgraphs or ()) == 1
        and case.reference is None
        and not case.is_random
        and not trial.features & {"dynamic-shapes", "empty"}
        and all(fed.array.shape == fed.definition.shape for fed in fed_definitions(case))
    )


@dataclass(frozen=True)
class _Bundle:
    """A model of parts that have nothing to do with each other.

    Attributes:
        parts: the trials.
        nodes: where the nodes of each part begin, and of the last one end.
        whole: the model; None if Delegraph refuses it.
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

    def attempts(self, subject: Subject) -> list[Attempt]:
        """Return the attempts of the parts that are taken and come out right."""
        if self.whole is None:
            return []
        with remembered(subject.name, "bundle", self.whole.case) as death:
            made = [] if death else self._made(subject, self.whole)
        return [each for each in made if each.is_taken and not wrong(subject, each)]

    def _made(self, subject: Subject, whole: Trial) -> list[Attempt]:
        watch = KernelWatch(PATTERN)
        try:
            watched = WatchedDelegate(subject.make(), watch)
            with open_interpreter(whole.case, watched) as interpreter:
                taken = [node.delegate is not None for node in interpreter.placement.nodes]
                ops = [node.op for node in interpreter.placement.nodes]
                outputs = list(answers(interpreter, whole.case.steps[0]))
        except DelegraphError:
            return []
        found = []
        for part, first, end in zip(self.parts, self.nodes, self.nodes[1:], strict=False):
            own, outputs = outputs[: len(part.outputs)], outputs[len(part.outputs) :]
            names = tuple(ops[i] for i in range(first, end) if taken[i])
            ran = watch.evaluations > 0
            found.append(Attempt(part, True, names, ran=ran, outputs=(tuple(own),)))
        return found
