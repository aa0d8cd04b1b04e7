"""A delegate's placements of models of every operator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from delegraph.delegation.placement import NodePlacement
from delegraph.errors import DelegateError, DelegraphError
from delegraph.testing.conformance.run_reports import remembered
from delegraph.testing.conformance.sampling import FULL
from delegraph.testing.conformance.subject import Subject
from delegraph.testing.conformance.trials import Trial, gallery_for, open_interpreter


@dataclass(frozen=True, eq=False)
class Placing:
    """Result of applying a delegate to a model: the placement of each node, or an error.

    Attributes:
        trial: the model.
        nodes: placement of each node; empty after an error.
        error: the reason why the delegate could not be applied; None if it was applied.
    """

    trial: Trial
    nodes: tuple[NodePlacement, ...] = ()
    error: DelegraphError | None = None


@cache
def placings(subject: Subject) -> tuple[Placing, ...]:
    """Apply a delegate to a few models of every operator; return which nodes it got in each."""
    asked = list(gallery_for(subject.make(), subject.effort.gallery))
    if subject.effort != FULL:  # claimed models would be compiled here, and are tried elsewhere
        asked = [t for t in asked if not subject.claims(t.forms, t.features)]
    return tuple(_placing(subject, trial) for trial in asked)


def _placing(subject: Subject, trial: Trial) -> Placing:
    with remembered(subject.name, "asked", trial.case) as death:
        if death:
            error = DelegateError(f"it {death}", delegate=subject.name, phase="initialize")
            return Placing(trial, error=error)
        try:
            with open_interpreter(trial.case, subject.make()) as interpreter:
                return Placing(trial, interpreter.placement.nodes)
        except DelegraphError as error:
            return Placing(trial, error=error)
