"""Cases that Delegraph's own kernels run: what is right, and which claim they need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import DelegraphError
from delegraph.runtime.delegate_choice import AnyDelegate
from delegraph.runtime.interpreter import Interpreter
from delegraph.schema.enums import TensorType
from delegraph.testing.conformance.features import features_of, operators_of, types_of
from delegraph.testing.operator_case import OperatorCase
from delegraph.testing.operator_cases import cases
from delegraph.testing.registered_operators import REGISTERED_OPERATORS

Array = NDArray[Any]
Outputs = tuple[tuple[Array, ...], ...]

GALLERY_CASES = 3
"""Models of every operator, of different types, that a delegate is only asked about."""


@dataclass(frozen=True, eq=False)
class Trial:
    """A case with the right results.

    Attributes:
        case: the model and what it is fed.
        expected: for each step, for each graph output.
        output_types: of the graph outputs.
        types: of inputs and outputs of the operator that the case is about.
        features: which it shows.
    """

    case: OperatorCase
    expected: Outputs
    output_types: tuple[TensorType, ...]
    types: frozenset[str]
    features: frozenset[str]


def open_interpreter(case: OperatorCase, *delegates: AnyDelegate) -> Interpreter:
    """Return an interpreter of the case's model; nothing is allocated yet."""
    return Interpreter(model_content=case.model(), delegates=delegates)


def answers(interpreter: Interpreter, arrays: Sequence[Array]) -> tuple[Array, ...]:
    """Return the outputs for *arrays*, resizing inputs that have another shape."""
    details = interpreter.get_input_details()
    for detail, array in zip(details, arrays, strict=True):
        if tuple(detail["shape"]) != array.shape:
            interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in zip(details, arrays, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    found = interpreter.get_output_details()
    return tuple(np.array(interpreter.get_tensor(detail["index"])) for detail in found)


def all_answers(interpreter: Interpreter, case: OperatorCase) -> Outputs:
    """Return the outputs of every step of a case."""
    return tuple(answers(interpreter, arrays) for arrays in case.steps)


def trial_of(case: OperatorCase) -> Trial | None:
    """Return the trial of a case; None when Delegraph refuses it."""
    try:
        with open_interpreter(case) as interpreter:
            expected = all_answers(interpreter, case)
            main = interpreter.session.subgraphs[0]
            operators = operators_of(main, case.op)
            return Trial(
                case,
                expected,
                tuple(main.tensors[i].type for i in main.outputs),
                types_of(main, operators),
                features_of(main, operators, case.steps),
            )
    except DelegraphError:
        return None


def trials_of(given: Iterable[OperatorCase]) -> tuple[Trial, ...]:
    """Return the trials of those cases that Delegraph runs."""
    return tuple(trial for trial in map(trial_of, given) if trial is not None)


@cache
def gallery() -> tuple[Trial, ...]:
    """Return a few trials of every operator that Delegraph has a kernel for."""
    return tuple(trial for op in REGISTERED_OPERATORS for trial in _samples(op))


def _samples(op: str) -> Iterable[Trial]:
    seen: set[frozenset[str]] = set()
    for case in cases(op, count=GALLERY_CASES):
        types = frozenset(case.types())
        if types not in seen and len(seen) < GALLERY_CASES:
            trial = trial_of(case)
            if trial is not None:
                seen.add(types)
                yield trial
