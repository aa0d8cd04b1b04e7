"""What the core refuses, this delegate refuses by itself: no check of the core stands before it.

Types of outputs and parameters of each operator's models are made wrong, one at a time. Where the
core refuses the model, the delegate's support function says no, or its lowering raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from delegraph import Rejection
from delegraph.errors import DelegraphError
from delegraph.schema import tables
from delegraph.schema.enums import TensorType
from delegraph.testing import cases, constant, fed, operator_case, tensor, trial_of
from delegraph.testing.conformance.trials import all_answers, open_interpreter
from delegraph.testing.operator_case import OperatorCase
from delegraph_numba_cpu.lowering import OPERATORS
from single_operator import Alone

CASES = 1

SHAPED_BY_THE_HOST = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
"""Operators whose parameters only say what shape the output has, which the host has seen to."""

OTHER_TYPES = ("FLOAT32", "INT8", "INT32", "BOOL", "STRING")

WRONG_VALUES = (-9, -1, 7, 2**31 - 1)


def with_graph(case: OperatorCase, **changes: Any) -> OperatorCase:
    graph, *others = case.records.subgraphs or ()
    return replace(
        case, records=case.records.replace(subgraphs=(graph.replace(**changes), *others))
    )


def main(case: OperatorCase) -> tables.SubGraph:
    return (case.records.subgraphs or ())[0]


def other_output_types(case: OperatorCase) -> Iterator[OperatorCase]:
    """Yield a case with each output declared as each other type."""
    graph = main(case)
    for index in (graph.operators or ())[0].outputs or ():
        tensors = list(graph.tensors or ())
        for name in OTHER_TYPES:
            tensors[index] = tensors[index].replace(type=TensorType[name])
            yield with_graph(case, tensors=tuple(tensors))


def other_parameters(case: OperatorCase) -> Iterator[OperatorCase]:
    """Yield a case with each of the first elements of an integer constant replaced."""
    buffers = case.records.buffers or ()
    for declared in main(case).tensors or ():
        data = buffers[declared.buffer].data
        if data is None or declared.type.name not in ("INT32", "INT64"):
            continue
        values = np.frombuffer(bytes(data), "<i4" if declared.type.name == "INT32" else "<i8")
        if len(values) > 16:
            continue
        for i in range(min(len(values), 2)):
            for wrong in WRONG_VALUES:
                changed = values.copy()
                changed[i] = wrong
                given = list(buffers)
                given[declared.buffer] = given[declared.buffer].replace(
                    data=np.frombuffer(changed.tobytes(), np.uint8)
                )
                yield replace(case, records=case.records.replace(buffers=tuple(given)))


def fewer_operands(case: OperatorCase) -> Iterator[OperatorCase]:
    """Yield a case whose node lacks inputs and outputs, from each on and each alone."""
    (node,) = main(case).operators or ()
    for field in ("inputs", "outputs"):
        given = [int(i) for i in getattr(node, field)]
        for i in range(len(given)):
            for left in (given[:i], [*given[:i], -1, *given[i + 1 :]]):
                yield with_graph(case, operators=(node.replace(**{field: left}),))


def is_refused_by_the_core(case: OperatorCase) -> bool:
    try:
        with open_interpreter(case) as interpreter:
            all_answers(interpreter, case)
    except (DelegraphError, ValueError, OverflowError):
        return True
    return False


def is_refused_alone(case: OperatorCase) -> bool:
    """Whether the delegate refuses a case without the help of the core."""
    try:
        alone = Alone(case)
        if alone.check() is not True:
            return True
        alone.run(case.steps[0])
    except AssertionError:
        raise
    except Exception:  # noqa: BLE001  # whatever says no
        return True
    return False


def taken_cases(op: str) -> Iterator[OperatorCase]:
    """Yield a case of each combination of types, if the delegate takes one."""
    seen = set()
    for case in cases(op, seed=5, count=CASES):
        types = tuple(declared.type for declared in main(case).tensors or ())
        if len(case.steps) != 1 or types in seen:
            continue
        trial = trial_of(case)
        if trial is not None and Alone(trial.case).check() is True:
            seen.add(types)
            yield trial.case


@pytest.mark.parametrize("op", sorted(OPERATORS))
def test_what_the_core_refuses_is_refused_without_it(op: str) -> None:
    for case in taken_cases(op):
        wrong = list(other_output_types(case))
        if op not in SHAPED_BY_THE_HOST:
            wrong += other_parameters(case)
        for each in wrong:
            assert is_refused_alone(each) or not is_refused_by_the_core(each), each


@pytest.mark.parametrize("op", sorted(OPERATORS))
def test_absent_operands_are_told_in_our_words(op: str) -> None:
    for case in taken_cases(op):
        for each in fewer_operands(case):
            alone = Alone(each)
            with suppress(DelegraphError):
                if alone.check() is True:
                    alone.lower()


VECTOR = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("axis", [-3, 2, 9, 2**31 - 1, -(2**31)])
def test_reverse_takes_no_axis_that_is_not_there(axis: int) -> None:
    case = operator_case(
        "REVERSE_V2", [fed(VECTOR), constant(np.array([axis], np.int32))], [tensor((2, 3))]
    )
    refused = Alone(case).check()
    assert isinstance(refused, Rejection)
    assert f"axis {axis} is outside [-2, 2)" in str(refused)


@pytest.mark.parametrize("op", ["RESHAPE", "SQUEEZE", "EXPAND_DIMS"])
@pytest.mark.parametrize(("given", "made"), [("FLOAT32", "INT8"), ("INT8", "FLOAT32")])
def test_reshaping_keeps_the_type(op: str, given: str, made: str) -> None:
    x = VECTOR.astype(np.float32 if given == "FLOAT32" else np.int8)
    case = operator_case(op, [fed(x), constant(np.array([6], np.int32))], [tensor((6,), made)])
    refused = Alone(case).check()
    assert isinstance(refused, Rejection)
    assert (refused.actual, refused.expected) == (made, given)


@pytest.mark.parametrize("made", ["STRING", "FLOAT32", "INT32"])
@pytest.mark.parametrize("type", [np.float32, np.int8, np.int32])
@pytest.mark.parametrize("op", ["EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER"])
def test_comparisons_give_truth_values(op: str, type: Any, made: str) -> None:
    x = VECTOR.astype(type)
    case = operator_case(op, [fed(x), fed(x.copy())], [tensor((2, 3), made)])
    refused = Alone(case).check()
    assert isinstance(refused, Rejection)
    assert (refused.actual, refused.expected) == (made, "BOOL")
