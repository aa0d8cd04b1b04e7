"""Where a delegate puts the nodes of models of every operator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from delegraph.delegation.placement import NodePlacement
from delegraph.errors import DelegraphError
from delegraph.testing.conformance.subject import Subject
from delegraph.testing.conformance.trials import Trial, gallery_for, open_interpreter


@dataclass(frozen=True, eq=False)
class Placing:
    """What a delegate says to a model.

    Attributes:
        trial: the model.
        nodes: where each is; none after an error.
        error: why the delegate could not be applied; None when it could.
    """

    trial: Trial
    nodes: tuple[NodePlacement, ...] = ()
    error: DelegraphError | None = None


@cache
def placings(subject: Subject) -> tuple[Placing, ...]:
    """Return what a delegate says to a few models of every operator."""
    return tuple(_placing(subject, trial) for trial in gallery_for(subject.make()))


def _placing(subject: Subject, trial: Trial) -> Placing:
    try:
        with open_interpreter(trial.case, subject.make()) as interpreter:
            return Placing(trial, interpreter.placement.nodes)
    except DelegraphError as error:
        return Placing(trial, error=error)
