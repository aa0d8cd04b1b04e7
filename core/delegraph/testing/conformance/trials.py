"""Cases that Delegraph's own kernels run: what is right, and which claim they need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.delegation.delegate import Delegate, DelegateFlags
from delegraph.errors import DelegraphError
from delegraph.runtime.delegate_choice import AnyDelegate
from delegraph.runtime.interpreter import Interpreter
from delegraph.runtime.subgraph import Subgraph
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
                _with_outputs_declared(case, main),
                expected,
                tuple(main.tensors[i].type for i in main.outputs),
                types_of(main, operators),
                features_of(main, operators, case.steps),
            )
    except DelegraphError:
        return None


def _with_outputs_declared(case: OperatorCase, main: Subgraph) -> OperatorCase:
    """Return a case that declares shapes and types of what it computes, as converters write models.

    Cases leave shapes out, since Delegraph works them out itself; delegates look at them before.
    """
    graph, *others = case.records.subgraphs or ()
    declared = [tuple((graph.tensors or ())[i].shape or ()) for i in graph.inputs or ()]
    fed = [array.shape for array in case.steps[0]]
    if others or main.has_dynamic_tensors or len(case.steps) > 1 or declared != fed:
        return case
    computed = {i for operator in graph.operators or () for i in operator.outputs or ()}
    tensors = tuple(
        record.replace(shape=main.tensors[i].shape, type=main.tensors[i].type)
        if i in computed
        else record
        for i, record in enumerate(graph.tensors or ())
    )
    return replace(case, records=case.records.replace(subgraphs=(graph.replace(tensors=tensors),)))


def trials_of(given: Iterable[OperatorCase]) -> tuple[Trial, ...]:
    """Return the trials of those cases that Delegraph runs."""
    return tuple(trial for trial in map(trial_of, given) if trial is not None)


def gallery_for(delegate: Delegate) -> list[Trial]:
    """Return a few trials of every operator, but those that a static delegate cannot meet."""
    if delegate.flags & DelegateFlags.ALLOW_DYNAMIC_TENSORS:
        return list(_gallery())
    return [trial for trial in _gallery() if "dynamic-shapes" not in trial.features]


@cache
def _gallery() -> tuple[Trial, ...]:
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
