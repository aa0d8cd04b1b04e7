"""Results of delegates that cannot be right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph import FailurePolicy, Interpreter, Node
from delegraph.errors import DelegateError, DelegateNodeError
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.options import AddOptions, ArgMaxOptions, GreaterOptions
from delegraph.testing import constant, graph_model, tensor
from support.by_name import sines
from support.faulty_delegate import Fault, Faulty, first_output
from support.policy_models import MODELS, assert_same, delegated, floats, stepped, undelegated

VALIDATE = FailurePolicy(validate=True)


def _set(**values: Any) -> Fault:
    return first_output(lambda y: [setattr(y, key, value) for key, value in values.items()])


def _write(value: Any) -> Fault:
    return first_output(lambda y: y.data.reshape(-1).__setitem__(0, value))


def _relu() -> bytes:
    q = tensor((4,), "INT8", scale=0.05, zero_point=-10)
    options = AddOptions(fused_activation_function=Act.RELU6)
    return graph_model(
        [("ADD", "x x", "y", options)], inputs="x", outputs="y", tensors={"x": q, "y": q}
    )


def _arg_max() -> bytes:
    tensors = {"axis": constant(np.array(0, np.int32)), "y": tensor((), "INT32")}
    options = ArgMaxOptions(output_type=2)
    return graph_model(
        [("SIN", "x", "s"), ("ARG_MAX", "s axis", "y", options)],
        inputs="x",
        outputs="y",
        tensors=tensors,
    )


def _greater() -> bytes:
    tensors = {"zero": constant(np.zeros(1, np.float32)), "y": tensor((4,), "BOOL")}
    return graph_model(
        [("GREATER", "x zero", "y", GreaterOptions())], inputs="x", outputs="y", tensors=tensors
    )


VIOLATIONS = {
    "NaN": (sines(), _write(np.nan), "is NaN or infinite where it should be a number"),
    "infinity": (sines(), _write(-np.inf), "is NaN or infinite where it should be a number"),
    "shape": (sines(), _set(shape=(2, 2)), r"has a wrong shape, expected \[4\]"),
    "bool": (_greater(), first_output(lambda y: y.data.view(np.uint8).fill(3)), "other than 0 and"),
    "clamp": (_relu(), _write(111), r"has values outside \[-10, 110\]"),
    "index": (_arg_max(), _write(4), r"has values outside \[0, 3\]"),
    "negative": (_arg_max(), _write(-1), r"has values outside \[0, 3\]"),
}


@pytest.mark.parametrize(
    ("array", "finding"),
    [
        (np.zeros(4), r"was given an array of float64\[4\]"),
        (np.zeros((2, 2), np.float32), r"array of float32\[2, 2\]"),
    ],
)
def test_another_array_in_a_later_run_is_an_error(array: Any, finding: str) -> None:
    replace = _set(data=array)

    def fault(context: Any, node: Node, run: int) -> None:
        if run > 1:
            replace(context, node, run)

    delegate = Faulty(fault=fault)
    with pytest.raises(DelegateNodeError, match=finding):
        delegated("chain", delegate, failures=VALIDATE)
    assert delegate.runs == 2


def _inputs(model: bytes) -> list[Any]:
    interpreter = Interpreter(model_content=model)
    dtype = interpreter.get_input_details()[0]["dtype"]
    return [x.astype(dtype) for x in floats(3)]


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_violation_is_an_error_that_says_what_is_wrong(name: str) -> None:
    model, fault, finding = VIOLATIONS[name]
    delegate = Faulty()
    interpreter = Interpreter(model_content=model, delegates=[delegate], failures=VALIDATE)
    steps = _inputs(model)
    expected = stepped(Interpreter(model_content=model), steps)
    delegate.fault = fault
    with pytest.raises(DelegateNodeError, match=finding) as caught:
        stepped(interpreter, steps[:1])
    assert caught.value.phase == "eval"
    delegate.fault = first_output(lambda y: None)
    assert_same(stepped(interpreter, steps), expected)


@pytest.mark.parametrize("policy", ["fallback", "shadow"])
@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_violation_falls_back_and_shadow_quarantines(name: str, policy: Any) -> None:
    model, fault, _ = VIOLATIONS[name]
    delegate = Faulty(fault=fault)
    interpreter = Interpreter(
        model_content=model,
        delegates=[delegate],
        failures=FailurePolicy(validate=True, on_failure=policy),
    )
    steps = _inputs(model)
    assert_same(stepped(interpreter, steps), stepped(Interpreter(model_content=model), steps))
    (incident,) = interpreter.incidents
    assert incident.is_quarantined == (policy == "shadow")
    assert delegate.runs == (1 if policy == "shadow" else 3)


def test_violations_pass_without_validation() -> None:
    interpreter, results = delegated(
        "chain", Faulty(fault=_write(np.nan)), failures=FailurePolicy(on_failure="fallback")
    )
    assert np.isnan(results[0][0])
    assert interpreter.incidents == ()


def _wrong_shape(context: Any, node: Node, run: int) -> None:
    context.resize_tensor(context.tensors[node.outputs[0]], (2, 2))


def test_a_wrong_static_shape_fails_the_application() -> None:
    interpreter = Interpreter(model_content=sines(), failures=VALIDATE)
    with pytest.raises(DelegateError, match=r"has a wrong shape, expected \[4\]"):
        interpreter.modify_graph_with_delegate(Faulty(at_prepare=_wrong_shape))


@pytest.mark.parametrize(
    "policy", [FailurePolicy("fallback", validate=True), FailurePolicy("shadow")], ids=str
)
def test_a_wrong_shape_after_a_resize_is_an_incident(policy: FailurePolicy) -> None:
    delegate = Faulty(at_prepare=_wrong_shape, dynamic=True)
    interpreter, results = delegated("chain", delegate, failures=policy)
    assert_same(results, undelegated("chain"))
    assert delegate.runs == 0
    assert interpreter.incidents[0].phase == "prepare"
    assert "has a wrong shape" in interpreter.incidents[0].error


def test_special_values_are_not_looked_for_when_inputs_have_them() -> None:
    delegate = Faulty(fault=_write(np.inf))
    interpreter = Interpreter(model_content=sines(), delegates=[delegate], failures=VALIDATE)
    (y,) = stepped(interpreter, [np.array([1, np.nan, 1, 2], np.float32)])
    assert np.isinf(y[0])


def test_a_shape_left_open_for_nothing_is_checked_while_invoking() -> None:
    def open_shape(context: Any, node: Node, run: int) -> None:
        context.set_dynamic(context.tensors[node.outputs[0]])

    def shorten(context: Any, node: Node, run: int) -> None:
        context.resize_tensor(context.tensors[node.outputs[0]], (2,))

    delegate = Faulty(at_prepare=open_shape, fault=shorten, dynamic=True)
    interpreter, results = delegated(
        "chain", delegate, failures=FailurePolicy(on_failure="fallback", validate=True)
    )
    assert_same(results, undelegated("chain"))
    assert "FLOAT32[2]) has a wrong shape, expected [4]" in interpreter.incidents[0].error


def test_special_values_that_the_kernels_have_too_are_no_violation() -> None:
    model = graph_model([("LOG", "x", "y")], inputs="x", outputs="y")
    delegate = Faulty()
    interpreter = Interpreter(model_content=model, delegates=[delegate], failures=VALIDATE)
    (y,) = stepped(interpreter, [np.array([-1, 0, 1, 2], np.float32)])
    assert np.isnan(y[0])
    delegate.fault = _write(np.inf)
    stepped(interpreter, [np.array([-1, 0, 1, 2], np.float32)])
    with pytest.raises(DelegateNodeError, match="NaN or infinite where it should be a number"):
        stepped(interpreter, [np.array([1, 1, 1, 2], np.float32)])


@pytest.mark.parametrize("name", MODELS)
def test_a_right_delegate_passes_every_check(name: str) -> None:
    for policy in ("raise", "fallback", "shadow"):
        delegate = Faulty(dynamic=True)
        interpreter, results = delegated(
            name, delegate, failures=FailurePolicy(on_failure=policy, validate=True, shadow_share=1)
        )
        assert_same(results, undelegated(name))
        assert interpreter.incidents == ()
        assert delegate.runs >= len(results)
