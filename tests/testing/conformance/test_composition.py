"""Larger models are made of cases, and stay whole while they are shrunk."""

from __future__ import annotations

import numpy as np

from delegraph import ActivationFunctionType as Activation
from delegraph import Interpreter
from delegraph.schema.options import AddOptions
from delegraph.testing import OperatorCase, constant, fed, operator_case, tensor, trial_of
from delegraph.testing.conformance.composition import Composition, behind_a_reshape
from delegraph.testing.outputs import outputs_of
from delegraph.tools.shrinking import shrunk

ONES = np.ones((2, 3), np.float32)


def add(a: np.ndarray, b: np.ndarray) -> OperatorCase:
    options = AddOptions(fused_activation_function=Activation.RELU)
    return operator_case("ADD", [fed(a), constant(b)], [tensor((2, 3))], options, version=2)


def negation(x: np.ndarray) -> OperatorCase:
    return operator_case("NEG", [fed(x)], [tensor((2, 3))])


def chain() -> OperatorCase:
    model = Composition()
    (two,) = model.add(add(ONES, ONES), {})
    (minus_two,) = model.add(negation(ONES), {0: two})
    (three,) = model.add(add(ONES, 5 * ONES), {0: minus_two})
    assert model.unread() == [three]
    return model.case("ADD", [minus_two, three])


def test_wired_cases_compute_one_after_another() -> None:
    case = chain()
    with Interpreter(model_content=case.model()) as interpreter:
        minus_two, three = outputs_of(interpreter, case.steps[0])
        operators = interpreter.session.subgraphs[0].operators
    np.testing.assert_array_equal(minus_two, -2 * ONES)
    np.testing.assert_array_equal(three, 3 * ONES)
    assert [(operator.name, operator.version) for operator in operators] == [
        ("ADD", 2), ("NEG", 1), ("ADD", 2),
    ]  # fmt: skip


def test_shape_behind_a_computed_reshape_is_known_only_while_invoking() -> None:
    trial = trial_of(negation(ONES))
    assert trial is not None
    dynamic = behind_a_reshape(trial)
    assert dynamic is not None
    np.testing.assert_array_equal(dynamic.expected[0][0], trial.expected[0][0])
    with Interpreter(model_content=dynamic.case.model()) as interpreter:
        interpreter.allocate_tensors()
        assert interpreter.session.subgraphs[0].has_dynamic_tensors


def test_shrinking_keeps_every_operator() -> None:
    def fails(case: OperatorCase) -> bool:
        trial = trial_of(case)
        return trial is not None and len(operators(case)) == 3

    small = shrunk(chain(), fails)
    assert [array.shape for array in small.steps[0]] == [(1, 1)]
    options = [operator.builtin_options for operator in operators(small)]
    assert options == [AddOptions(), None, AddOptions()]


def operators(case: OperatorCase):
    return (case.records.subgraphs or ())[0].operators or ()
