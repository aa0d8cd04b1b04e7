"""Specimens: a few models that a delegate takes, for the checks of the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Any
from unittest import SkipTest

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.partition_tolerance import HUGE
from delegraph.testing.conformance.attempts import wrong
from delegraph.testing.conformance.bundles import attempts
from delegraph.testing.conformance.chains import chains
from delegraph.testing.conformance.differences import is_same
from delegraph.testing.conformance.subject import Subject
from delegraph.testing.conformance.trials import Trial, open_interpreter, trial_of
from delegraph.testing.outputs import outputs_of

Array = NDArray[Any]
Types = tuple[tuple[str, str], ...]

_NONE = "the delegate computes none of the models it claims rightly; see soundness and numbers"


class NotTried(SkipTest):
    """Reason why a check that applies was not tried."""


@cache
def specimens(subject: Subject) -> tuple[Trial, ...]:
    """Return trials of one invoke that the delegate claims and computes right.

    They differ in operators, types and features, and some have tensors inside a partition. All have
    non-empty inputs and give the same results each time.

    Raises:
        NotTried: there is no such trial.
    """
    found: dict[tuple[str, frozenset[Types], frozenset[str]], Trial] = {}
    for op in subject.operators:
        for made in attempts(subject, op):
            key = (op, _types(made.trial), made.trial.features)
            if key not in found and made.is_claimed and made.ran and not wrong(subject, made):
                trial = first_step(made.trial)
                if _is_telling(trial):
                    found[key] = trial
    if not found:
        raise NotTried(_NONE)
    chosen = list(found.values())
    inner = [first_step(chain) for chain in chains(subject)]
    alone = chosen[:: -(-len(chosen) // subject.effort.specimens)]
    return tuple([*filter(_is_telling, inner), *alone][: subject.effort.specimens])


def _types(trial: Trial) -> frozenset[Types]:
    return frozenset(form.types for form in trial.forms)


def computed(subject: Subject) -> Iterator[Trial]:
    """Yield several models for each operator that the delegate claims and computes right.

    Raises:
        NotTried: there is no such trial.
    """
    if not subject.effort.computed:
        yield from specimens(subject)
    elif not specimens(subject):
        raise NotTried(_NONE)
    for op in subject.operators:
        made = (each.trial for each in attempts(subject, op) if each.is_claimed and each.ran)
        fitting = (trial for trial in made if not trial.case.is_random)
        yield from map(first_step, islice(fitting, subject.effort.computed))


def first_step(trial: Trial) -> Trial:
    """Return *trial* with its first invoke only."""
    case = replace(trial.case, steps=trial.case.steps[:1])
    return replace(trial, case=case, expected=trial.expected[:1])


def with_other_values(trial: Trial) -> Trial | None:
    """Return the model of *trial* with other inputs that give another result; None if not found."""
    for shift in (1, 2, 3):
        arrays = [np.roll(array.reshape(-1), shift).reshape(array.shape) for array in _fed(trial)]
        other = _fed_with(trial, arrays)
        if other is not None and not is_same(other.expected[0], trial.expected[0]):
            return other
    return None


def with_other_shapes(trial: Trial, times: int = 2) -> Trial | None:
    """Return the trial with one axis *times* as long; None if no axis can be longer."""
    lengths = sorted({(axis, n) for a in _fed(trial) for axis, n in enumerate(a.shape)})
    for axis, length in lengths:
        arrays = [_lengthened(array, axis, length, times) for array in _fed(trial)]
        other = _fed_with(trial, arrays)
        if other is not None:
            return other
    return None


def all_with(
    subject: Subject, change: Callable[[Trial], Trial | None], what: str
) -> Iterator[tuple[Trial, Trial]]:
    """Yield each sample model (specimen) that *change* can change, with the changed model.

    Args:
        subject: the delegate under test.
        change: function that returns the changed model, or None if it cannot change it.
        what: text for the message if no model can be changed.

    Raises:
        SkipTest: no specimen can be changed; the message has *what*.
    """
    pairs = [(trial, change(trial)) for trial in specimens(subject)]
    found = [(trial, other) for trial, other in pairs if other is not None]
    if not found:
        raise SkipTest(f"no model that it takes can be given {what}")
    yield from found


def _fed(trial: Trial) -> Sequence[Array]:
    return trial.case.steps[0]


def _fed_with(trial: Trial, arrays: Sequence[Array]) -> Trial | None:
    return trial_of(replace(trial.case, steps=(tuple(arrays),)))


def _lengthened(array: Array, axis: int, length: int, times: int) -> Array:
    if axis < array.ndim and array.shape[axis] == length:
        turned = array[tuple([slice(None)] * axis + [slice(None, None, -1)])]
        return np.concatenate([turned if i % 2 else array for i in range(times)], axis)
    return array


def _is_telling(trial: Trial) -> bool:
    varied = any(len(set(array.reshape(-1).tolist())) > 1 for array in _fed(trial))
    if not varied or trial.case.is_random or "empty" in trial.features:
        return False
    if any(map(_stands_for_infinity, trial.expected[0])):
        return False
    with open_interpreter(trial.case) as interpreter:
        runs = [outputs_of(interpreter, _fed(trial)) for _ in range(2)]
    return is_same(*runs)


def _stands_for_infinity(array: Array) -> bool:
    """Whether an array has values so large that a delegate may compute them as infinity."""
    return array.dtype.kind == "f" and bool((np.abs(array.astype(np.float64)) >= HUGE).any())
