"""Chains: models of several nodes in one partition, with tensors inside the partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from delegraph.testing.conformance.attempts import careful_attempt, wrong
from delegraph.testing.conformance.operator_models import bricks, composed, fits
from delegraph.testing.conformance.subject import Subject
from delegraph.testing.conformance.trials import Trial, trial_of

LENGTH = 5
"""Number of bricks (one-operator models) in a chain."""


@cache
def chains(subject: Subject) -> tuple[Trial, ...]:
    """Return a few chains of operators that a delegate claims wholly and computes right."""
    made: list[Trial] = []
    for links in _links(bricks(subject)):
        if len(made) == subject.effort.chains:
            break
        case = composed(bricks(subject), [(link, 0, False, False) for link in links], None)
        trial = trial_of(case)
        attempt = None if trial is None else careful_attempt(subject, trial)
        if (
            attempt
            and len(attempt.taken) == nodes_of(attempt.trial)
            and not wrong(subject, attempt)
        ):
            made.append(attempt.trial)
    return tuple(made)


def nodes_of(trial: Trial) -> int:
    """Return the number of nodes in a model's main subgraph."""
    return len(trial.case.main.operators or ())


def _links(found: Sequence[Trial]) -> Iterator[tuple[int, ...]]:
    """Yield sequences of models in which each model's output can be the next model's input.

    Each sequence is a tuple of indices in *found*.
    """
    done: set[str] = set()
    for last, trial in enumerate(found):
        if trial.case.op not in done and fits(trial, trial):
            done.add(trial.case.op)
            others = (
                i for i, t in enumerate(found) if t.case.op != trial.case.op and fits(t, trial)
            )
            yield (next(others, last), *[last] * (LENGTH - 1))
