"""What an interpreter does about delegates that fail, or compute the wrong thing."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from corpus import corpus_file, needs_corpus
from faulty_delegate import (
    Fault,
    Faulty,
    FaultyKernel,
    chain,
    counting,
    counting_in_a_branch,
    doubling,
    failing,
    first_output,
    floats,
    positive_positions,
    remembering,
    spoil,
    stepped,
)
from graph_model import graph_model
from one_op import constant, tensor

from delegraph import (
    DelegateContext,
    DelegateParams,
    Interpreter,
    Node,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
)
from delegraph.delegation.capabilities import Tolerance
from delegraph.errors import DelegateError, DelegateNodeError
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.options import AddOptions, ArgMaxOptions, GreaterOptions

STATEFUL = {
    "variable": (remembering(), floats(7, 1, 1)),
    "resource": (counting(), floats(7)),
    "branch": (counting_in_a_branch(), floats(7)),
}
MODELS = {
    "chain": (chain(), floats(7)),
    "resized": (chain(), [*floats(2), *floats(2, 3, 4), *floats(2, 2)]),
    "dynamic": (positive_positions(), floats(7)),
    "loop": (doubling(), [np.full(1, n, np.float32) for n in (1, 3, 20, 0.5)]),
    **STATEFUL,
}


def undelegated(name: str) -> list[Any]:
    model, steps = MODELS[name]
    interpreter = Interpreter(model_content=model)
    if name in ("resource", "branch"):
        interpreter.session.resources["", "v"] = np.zeros(4, np.float32)
    return stepped(interpreter, steps)


def delegated(name: str, delegate: Faulty, **policy: Any) -> tuple[Interpreter, list[Any]]:
    model, steps = MODELS[name]
    interpreter = Interpreter(model_content=model, delegates=[delegate], **policy)
    if name in ("resource", "branch"):
        interpreter.session.resources["", "v"] = np.zeros(4, np.float32)
    return interpreter, stepped(interpreter, steps)


def assert_same(found: list[Any], expected: list[Any]) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


# -- raise ---------------------------------------------------------------------------------------


def test_without_a_policy_the_error_names_delegate_nodes_phase_and_cause() -> None:
    interpreter = Interpreter(model_content=chain(), delegates=[Faulty(fault=failing())])
    with pytest.raises(
        DelegateNodeError,
        match=r"\(faulty\) failed to invoke: OSError: device lost \(delegate 'faulty', in place of "
        r"nodes 0, 1, 2, 3, 4\)",
    ) as caught:
        stepped(interpreter, floats(1))
    assert (caught.value.delegate, caught.value.phase) == ("faulty", "eval")
    assert isinstance(caught.value.__cause__, OSError)
    assert interpreter.incidents == ()


def test_without_a_policy_nothing_is_wrapped() -> None:
    interpreter = Interpreter(model_content=chain(), delegates=[Faulty("SIN")])
    stepped(interpreter, floats(1))
    (step, *_) = interpreter.session.subgraphs[0]._steps
    assert "guarding" not in step.__module__


# -- fallback ------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["fallback", "shadow"])
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_results_are_right_whenever_the_delegate_fails(name: str, every: int, policy: Any) -> None:
    delegate = Faulty(fault=failing(every), dynamic=True)
    interpreter, results = delegated(name, delegate, on_failure=policy)
    assert_same(results, undelegated(name))
    assert sum(incident.count for incident in interpreter.incidents) == delegate.runs // every
    for incident in interpreter.incidents:
        assert (incident.delegate, incident.phase) == ("faulty", "eval")
        assert incident.error == "OSError: device lost"
        assert not incident.is_quarantined


@pytest.mark.parametrize("name", ["chain", "resized", "variable"])
def test_static_delegates_fall_back_as_well(name: str) -> None:
    interpreter, results = delegated(name, Faulty(fault=failing(2)), on_failure="fallback")
    assert_same(results, undelegated(name))
    assert sum(incident.count for incident in interpreter.incidents) >= 3


@pytest.mark.parametrize(("name", "ops"), [("variable", ()), ("resource", ()), ("branch", ("IF",))])
def test_a_state_left_half_done_is_put_back(name: str, ops: tuple[str, ...]) -> None:
    """Each failing run has advanced the state already; the kernels start from the one before."""
    delegate = Faulty(*ops, fault=failing(2), dynamic=True)
    interpreter, results = delegated(name, delegate, on_failure="fallback")
    assert_same(results, undelegated(name))
    assert interpreter.incidents[0].count == 3


def test_a_variable_that_a_failing_run_replaced_is_back() -> None:
    def replace(context: Any, node: Node, run: int) -> None:
        context.tensors[context.variables[0]].data = np.full((1, 1), 9, np.float32)
        raise OSError("device lost")

    _, results = delegated("variable", Faulty(fault=replace), on_failure="fallback")
    assert_same(results, undelegated("variable"))


def test_a_state_in_the_delegates_buffer_is_read_before_it_is_needed() -> None:
    buffer: list[Any] = []

    class Keeping(Faulty):
        def copy_from_buffer_handle(self, context: DelegateContext, tensor: Any) -> None:
            np.copyto(tensor.data, buffer[-1])

    def keep(context: Any, node: Node, run: int) -> None:
        state = context.tensors[context.variables[0]]
        context.set_buffer_handle(state, 1, node.delegate)
        buffer.append(state.data.copy())
        state.data[...], state.data_is_stale = 77, True
        if run % 2 == 0:
            raise OSError("device lost")

    _, results = delegated("variable", Keeping(fault=keep), on_failure="fallback")
    assert_same(results, undelegated("variable"))


def test_a_resource_that_a_failing_run_made_is_gone() -> None:
    interpreter = Interpreter(
        model_content=counting(), delegates=[Faulty(dynamic=True)], on_failure="fallback"
    )
    resources = interpreter.session.resources

    def invent(context: Any, node: Node, run: int) -> None:
        resources["", "other"] = np.ones(1)
        resources["", "v"] = np.full(9, 9.0)  # another array, not other values
        raise OSError("device lost")

    interpreter.session.delegates[0].simple.at_start = invent  # type: ignore[attr-defined]
    resources["", "v"] = np.ones(4, np.float32)
    (y,) = stepped(interpreter, [np.ones(4, np.float32)])
    np.testing.assert_array_equal(y, np.full(4, 2.0))
    np.testing.assert_array_equal(resources["", "v"], np.full(4, 2.0))
    assert ("", "other") not in resources


def test_an_incident_is_logged_once_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "delegraph"):
        interpreter, _ = delegated("chain", Faulty(fault=failing()), on_failure="fallback")
    assert [record.message for record in caplog.records] == [
        "delegate 'faulty', node 5 of subgraph 0, eval: OSError: device lost; "
        "Delegraph's kernels take over"
    ]
    (incident,) = interpreter.incidents
    assert incident.count == 7
    assert incident.nodes == (0, 1, 2, 3, 4)


@pytest.mark.parametrize("dynamic", [True, False])
def test_a_delegate_that_refuses_new_shapes_leaves_its_nodes_to_the_kernels(dynamic: bool) -> None:
    def refuse(context: Any, node: Node, run: int) -> None:
        if context.tensors[node.inputs[0]].shape == (3, 4):
            raise ValueError("too many rows")

    interpreter, results = delegated(
        "resized", Faulty(at_prepare=refuse, dynamic=dynamic), on_failure="fallback"
    )
    assert_same(results, undelegated("resized"))
    (incident,) = interpreter.incidents
    assert (incident.phase, incident.error) == ("prepare", "ValueError: too many rows")


def test_shapes_known_only_while_invoking_are_found_when_preparing_fails() -> None:
    def refuse(context: Any, node: Node, run: int) -> None:
        raise ValueError("no")

    for ops in ((), ("WHERE",), ("CAST", "MUL")):
        delegate = Faulty(*ops, before_prepare=refuse, dynamic=True)
        interpreter, results = delegated("dynamic", delegate, on_failure="fallback")
        assert_same(results, undelegated("dynamic"))
        assert interpreter.incidents[0].phase == "prepare"


def test_failing_while_it_is_applied_is_still_an_error() -> None:
    def refuse(context: Any, node: Node, run: int) -> None:
        raise ValueError("no")

    interpreter = Interpreter(model_content=chain(), on_failure="fallback")
    with pytest.raises(DelegateError, match=r"'faulty' could not be applied.*ValueError: no"):
        interpreter.modify_graph_with_delegate(Faulty(at_prepare=refuse))
    assert_same(stepped(interpreter, floats(7)), undelegated("chain"))
    assert interpreter.incidents == ()


def _stale(context: Any, node: Node, run: int) -> None:
    for index in node.outputs:
        y = context.tensors[index]
        context.set_buffer_handle(y, 7, node.delegate)
        y.data[...], y.data_is_stale = 77, True


def test_a_buffer_that_cannot_be_copied_falls_back() -> None:
    for ops in ((), ("SIN",)):
        interpreter, results = delegated("chain", Faulty(*ops, fault=_stale), on_failure="fallback")
        assert_same(results, undelegated("chain"))
        assert {incident.phase for incident in interpreter.incidents} == {"copy"}
        assert "OSError: bus fell asleep" in interpreter.incidents[0].error


def test_values_in_a_delegates_buffer_are_read_when_its_next_node_falls_back() -> None:
    buffer: dict[int, Any] = {}

    class Keeping(Faulty):
        def copy_from_buffer_handle(self, context: DelegateContext, tensor: Any) -> None:
            np.copyto(tensor.data, buffer[tensor.index])

        def copy_to_buffer_handle(self, context: DelegateContext, tensor: Any) -> None:
            buffer[tensor.index] = tensor.data.copy()

    def keep(context: Any, node: Node, run: int) -> None:
        y = context.tensors[node.outputs[0]]
        context.set_buffer_handle(y, 1, node.delegate)
        buffer[y.index] = y.data.copy()
        y.data[...], y.data_is_stale = 77, True
        if run % 2 == 0:
            raise OSError("device lost")

    interpreter, results = delegated(
        "chain",
        Keeping(fault=keep),
        on_failure="fallback",
        experimental_disable_delegate_node_fusion=True,
    )
    assert_same(results, undelegated("chain"))
    assert sum(incident.count for incident in interpreter.incidents) == 5 * 7 // 2


def test_what_the_kernels_computed_is_in_the_delegates_buffer_too() -> None:
    written: list[Any] = []

    class Keeping(Faulty):
        def copy_to_buffer_handle(self, context: DelegateContext, tensor: Any) -> None:
            written.append(tensor.data.copy())

    def keep(context: Any, node: Node, run: int) -> None:
        context.set_buffer_handle(context.tensors[node.outputs[0]], 1, node.delegate)
        raise OSError("device lost")

    _, results = delegated("chain", Keeping(fault=keep), on_failure="fallback")
    assert_same(written, results)


@pytest.mark.parametrize("failing_one", ["earlier", "later", "both"])
def test_stacked_delegates_fall_back_one_by_one(failing_one: str) -> None:
    def fault(name: str) -> Fault:
        return failing() if failing_one in (name, "both") else first_output(lambda y: None)

    earlier = Faulty("SIN", name="earlier", fault=fault("earlier"))
    later = Faulty("ADD", "earlier", name="later", fault=fault("later"))
    interpreter = Interpreter(
        model_content=chain(), delegates=[earlier, later], on_failure="fallback"
    )
    assert_same(stepped(interpreter, floats(7)), undelegated("chain"))
    assert {incident.delegate for incident in interpreter.incidents}.issubset({"earlier", "later"})
    assert interpreter.incidents


def test_arrays_that_a_failing_delegate_put_in_place_are_taken_away() -> None:
    def replace(context: Any, node: Node, run: int) -> None:
        y = context.tensors[node.outputs[0]]
        y.data, y.shape = np.zeros((5, 5)), (5, 5)
        raise OSError("device lost")

    _, results = delegated("chain", Faulty(fault=replace), on_failure="fallback")
    assert_same(results, undelegated("chain"))


def test_interrupts_get_through() -> None:
    for stop in (KeyboardInterrupt, SystemExit):
        delegate = Faulty(fault=failing(error=stop()))
        interpreter = Interpreter(
            model_content=chain(), delegates=[delegate], on_failure="fallback"
        )
        with pytest.raises(stop):
            stepped(interpreter, floats(1))
        assert interpreter.incidents == ()


class _Alone(FaultyKernel):
    """Computes an operator that nobody else knows."""

    def prepare(self, context: Any, node: Node) -> None:
        pass

    def eval(self, context: Any, node: Node) -> None:
        self.delegate.runs += 1
        np.copyto(context.tensors[node.outputs[0]].data, context.tensors[node.inputs[0]].data)
        self.delegate.fault(context, node, self.delegate.runs)


class Alone(Faulty):
    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return _Alone(self)


@pytest.mark.parametrize("policy", ["fallback", "shadow"])
def test_an_operator_without_kernel_cannot_fall_back(policy: Any) -> None:
    model = graph_model([("Odd", "x", "y")], inputs="x", outputs="y")
    interpreter = Interpreter(
        model_content=model,
        delegates=[Alone("Odd", fault=failing(2))],
        on_failure=policy,
        validate=True,
    )
    steps = floats(2)
    assert_same(stepped(interpreter, steps[:1]), steps[:1])
    with pytest.raises(
        DelegateNodeError,
        match=r"OSError: device lost; Delegraph's kernels cannot take over: Node number 0 \(Odd\)",
    ):
        stepped(interpreter, steps[1:])
    assert_same(stepped(interpreter, steps[:1]), steps[:1])


# -- shadow --------------------------------------------------------------------------------------


def _off_by(amount: float, *, from_run: int = 1) -> Fault:
    def fault(context: Any, node: Node, run: int) -> None:
        if run >= from_run:
            y = context.tensors[node.outputs[0]].data
            y.reshape(-1)[-1:] += np.asarray(amount, y.dtype)

    return fault


def test_a_wrong_delegate_is_quarantined_at_the_first_invoke() -> None:
    delegate = Faulty(fault=_off_by(0.1))
    interpreter, results = delegated("chain", delegate, on_failure="shadow")
    assert_same(results, undelegated("chain"))
    assert delegate.runs == 1
    (incident,) = interpreter.incidents
    assert incident.is_quarantined
    assert incident.count == 1
    assert "FLOAT32[4]" in incident.error
    assert "at [3], the largest of 1 differences in 4 elements" in incident.error


def test_results_within_the_tolerance_are_the_delegates() -> None:
    delegate = Faulty(fault=_off_by(0.1), tolerance={"FLOAT32": Tolerance(absolute=0.2)})
    interpreter, results = delegated("chain", delegate, on_failure="shadow", shadow_share=1)
    assert interpreter.incidents == ()
    assert delegate.runs == 7
    for a, b in zip(results, undelegated("chain"), strict=True):
        np.testing.assert_allclose(a - b, [0, 0, 0, 0.1], rtol=1e-5, atol=1e-7)


def test_quarantine_holds_for_all_partitions_and_every_allocation() -> None:
    delegate = Faulty("SIN", fault=_off_by(0.1))
    interpreter, results = delegated("resized", delegate, on_failure="shadow")
    assert_same(results, undelegated("resized"))
    assert delegate.runs == 1
    assert delegate.preparations == 2  # of two partitions, and no more after the resize
    assert interpreter.incidents[0].count == 1


def test_nothing_is_asked_of_a_quarantined_delegate() -> None:
    class Keeping(Faulty):
        def copy_to_buffer_handle(self, context: DelegateContext, tensor: Any) -> None:
            raise AssertionError("asked")

    def keep(context: Any, node: Node, run: int) -> None:
        context.set_buffer_handle(context.tensors[node.outputs[0]], 1, node.delegate)
        _off_by(1)(context, node, run)

    interpreter, results = delegated("chain", Keeping(fault=keep), on_failure="shadow")
    assert_same(results, undelegated("chain"))
    assert len(interpreter.incidents) == 1


def test_quarantine_does_not_touch_other_delegates() -> None:
    wrong, right = Faulty("SIN", fault=_off_by(1), name="wrong"), Faulty("ADD", name="right")
    interpreter = Interpreter(model_content=chain(), delegates=[wrong, right], on_failure="shadow")
    assert_same(stepped(interpreter, floats(7)), undelegated("chain"))
    assert (wrong.runs, right.runs) == (1, 7)


@pytest.mark.parametrize(("share", "noticed"), [(1.0, 2), (0.5, 3), (0.25, 5), (0.4, 4)])
def test_recomputed_invokes_are_spread_evenly_after_the_first(share: float, noticed: int) -> None:
    delegate = Faulty(fault=_off_by(0.1, from_run=2))
    delegated("chain", delegate, on_failure="shadow", shadow_share=share)
    assert delegate.runs == noticed


def test_spreading_goes_on_across_allocations() -> None:
    delegate = Faulty(fault=_off_by(0.1, from_run=2))
    delegated("resized", delegate, on_failure="shadow", shadow_share=0.25)
    assert delegate.runs == 5


@pytest.mark.parametrize("name", STATEFUL)
def test_a_state_is_advanced_once_although_computed_twice(name: str) -> None:
    delegate = Faulty(dynamic=True)
    interpreter, results = delegated(name, delegate, on_failure="shadow", shadow_share=1)
    assert_same(results, undelegated(name))
    assert interpreter.incidents == ()
    assert delegate.runs >= 7


def test_a_wrong_variable_counts_as_a_wrong_result() -> None:
    def forget(context: Any, node: Node, run: int) -> None:
        context.tensors[context.variables[0]].data[...] += 1

    interpreter, results = delegated("variable", Faulty(fault=forget), on_failure="shadow")
    assert_same(results, undelegated("variable"))
    assert "'h'" in interpreter.incidents[0].error
    assert interpreter.incidents[0].is_quarantined


def test_a_delegate_that_cannot_say_its_tolerance_leaves_its_nodes_to_the_kernels() -> None:
    class Speechless(Faulty):
        def capabilities(self) -> Any:
            raise LookupError("not configured")

    interpreter, results = delegated("chain", Speechless(dynamic=True), on_failure="shadow")
    assert_same(results, undelegated("chain"))
    assert interpreter.incidents[0].error == "LookupError: not configured"


def test_a_variable_within_the_tolerance_is_the_delegates() -> None:
    def forget(context: Any, node: Node, run: int) -> None:
        context.tensors[context.variables[0]].data[...] += 0.25

    _, results = delegated(
        "variable",
        Faulty(fault=forget, tolerance={"FLOAT32": Tolerance(absolute=0.5)}),
        on_failure="shadow",
        shadow_share=1,
    )
    assert abs(results[1] - undelegated("variable")[1]) == pytest.approx(0.125)


def test_a_wrong_number_of_dynamic_elements_is_a_wrong_shape() -> None:
    def shorten(context: Any, node: Node, run: int) -> None:
        context.resize_tensor(context.tensors[node.outputs[0]], (1, 1))

    interpreter, results = delegated(
        "dynamic", Faulty(fault=shorten, dynamic=True), on_failure="shadow"
    )
    assert_same(results, undelegated("dynamic"))
    assert "has a wrong shape" in interpreter.incidents[0].error


def test_random_operators_are_not_compared() -> None:
    shape = constant(np.array([4], np.int32))
    model = graph_model(
        [("RANDOM_UNIFORM", "shape", "r"), ("ADD", "r x", "y", AddOptions())],
        inputs="x",
        outputs="y",
        tensors={"shape": shape},
    )
    interpreter = Interpreter(model_content=model, delegates=[Faulty()], on_failure="shadow")
    stepped(interpreter, floats(3))
    assert interpreter.incidents == ()


# -- validate ------------------------------------------------------------------------------------


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
    "NaN": (chain(), _write(np.nan), "is NaN or infinite where it should be a number"),
    "infinity": (chain(), _write(-np.inf), "is NaN or infinite where it should be a number"),
    "dtype": (chain(), _set(data=np.zeros(4)), r"was given an array of float64\[4\]"),
    "array": (chain(), _set(data=np.zeros((2, 2), np.float32)), r"array of float32\[2, 2\]"),
    "shape": (chain(), _set(shape=(2, 2)), r"has a wrong shape, expected \[4\]"),
    "bool": (_greater(), first_output(lambda y: y.data.view(np.uint8).fill(3)), "other than 0 and"),
    "clamp": (_relu(), _write(111), r"has values outside \[-10, 110\]"),
    "index": (_arg_max(), _write(4), r"has values outside \[0, 3\]"),
    "negative": (_arg_max(), _write(-1), r"has values outside \[0, 3\]"),
}


def _inputs(model: bytes) -> list[Any]:
    interpreter = Interpreter(model_content=model)
    dtype = interpreter.get_input_details()[0]["dtype"]
    return [x.astype(dtype) for x in floats(3)]


@pytest.mark.parametrize("name", VIOLATIONS)
def test_a_violation_is_an_error_that_says_what_is_wrong(name: str) -> None:
    model, fault, finding = VIOLATIONS[name]
    delegate = Faulty()
    interpreter = Interpreter(model_content=model, delegates=[delegate], validate=True)
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
        model_content=model, delegates=[delegate], validate=True, on_failure=policy
    )
    steps = _inputs(model)
    assert_same(stepped(interpreter, steps), stepped(Interpreter(model_content=model), steps))
    (incident,) = interpreter.incidents
    assert incident.is_quarantined == (policy == "shadow")
    assert delegate.runs == (1 if policy == "shadow" else 3)


def test_violations_pass_without_validation() -> None:
    interpreter, results = delegated("chain", Faulty(fault=_write(np.nan)), on_failure="fallback")
    assert np.isnan(results[0][0])
    assert interpreter.incidents == ()


def _wrong_shape(context: Any, node: Node, run: int) -> None:
    context.resize_tensor(context.tensors[node.outputs[0]], (2, 2))


def test_a_wrong_static_shape_fails_the_application() -> None:
    interpreter = Interpreter(model_content=chain(), validate=True)
    with pytest.raises(DelegateError, match=r"has a wrong shape, expected \[4\]"):
        interpreter.modify_graph_with_delegate(Faulty(at_prepare=_wrong_shape))


@pytest.mark.parametrize(
    ("policy", "runs"), [({"on_failure": "fallback", "validate": True}, 0), ({}, 0)]
)
def test_a_wrong_shape_after_a_resize_is_an_incident(policy: Any, runs: int) -> None:
    policy = policy or {"on_failure": "shadow"}
    delegate = Faulty(at_prepare=_wrong_shape, dynamic=True)
    interpreter, results = delegated("chain", delegate, **policy)
    assert_same(results, undelegated("chain"))
    assert delegate.runs == runs
    assert interpreter.incidents[0].phase == "prepare"
    assert "has a wrong shape" in interpreter.incidents[0].error


def test_special_values_are_not_looked_for_when_inputs_have_them() -> None:
    delegate = Faulty(fault=_write(np.inf))
    interpreter = Interpreter(model_content=chain(), delegates=[delegate], validate=True)
    (y,) = stepped(interpreter, [np.array([1, np.nan, 1, 2], np.float32)])
    assert np.isinf(y[0])


def test_a_shape_left_open_for_nothing_is_checked_while_invoking() -> None:
    def open_shape(context: Any, node: Node, run: int) -> None:
        context.set_dynamic(context.tensors[node.outputs[0]])

    def shorten(context: Any, node: Node, run: int) -> None:
        context.resize_tensor(context.tensors[node.outputs[0]], (2,))

    delegate = Faulty(at_prepare=open_shape, fault=shorten, dynamic=True)
    interpreter, results = delegated("chain", delegate, on_failure="fallback", validate=True)
    assert_same(results, undelegated("chain"))
    assert "FLOAT32[2]) has a wrong shape, expected [4]" in interpreter.incidents[0].error


def test_special_values_that_the_kernels_have_too_are_no_violation() -> None:
    model = graph_model([("LOG", "x", "y")], inputs="x", outputs="y")
    delegate = Faulty()
    interpreter = Interpreter(model_content=model, delegates=[delegate], validate=True)
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
            name, delegate, on_failure=policy, validate=True, shadow_share=1
        )
        assert_same(results, undelegated(name))
        assert interpreter.incidents == ()
        assert delegate.runs >= len(results)


# -- a real model --------------------------------------------------------------------------------


class Whole(SimpleDelegateInterface):
    """Takes everything and runs it as a model of its own; fails every third time."""

    def __init__(self) -> None:
        self.runs = 0

    def name(self) -> str:
        return "whole"

    def is_node_supported_by_delegate(self, registration: Any, node: Any, context: Any) -> bool:
        return True

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return _WholeKernel(self)


class _WholeKernel(SimpleDelegateKernelInterface):
    def __init__(self, delegate: Whole) -> None:
        self.delegate = delegate

    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        self.inner = Interpreter(model_content=params.as_model())
        tensors = context.tensors
        self.inputs = [i for i in params.input_tensors if not tensors[i].is_constant]
        self.outputs = params.output_tensors

    def prepare(self, context: DelegateContext, node: Node) -> None:
        self.inner.allocate_tensors()

    def eval(self, context: DelegateContext, node: Node) -> None:
        for index, detail in zip(self.inputs, self.inner.get_input_details(), strict=True):
            self.inner.set_tensor(detail["index"], context.tensors[index].data)
        self.inner.invoke()
        self.delegate.runs += 1
        if self.delegate.runs % 3 == 0:
            spoil(context.tensors[self.outputs[0]].data)
            raise OSError("device lost")
        for index, detail in zip(self.outputs, self.inner.get_output_details(), strict=True):
            np.copyto(context.tensors[index].data, self.inner.get_tensor(detail["index"]))


@needs_corpus
@pytest.mark.parametrize(
    "name", ["test_data__mobilenet_v1_0.25_128_quant", "support__mobilenet_v1_0.25_224_1_default_1"]
)
def test_a_mobilenet_keeps_its_results_bit_for_bit(name: str) -> None:
    path = str(corpus_file(name))
    interpreter = Interpreter(path, delegates=[Whole()], on_failure="fallback")
    plain = Interpreter(path)
    detail = plain.get_input_details()[0]
    steps = [(x * 40 + 128).astype(detail["dtype"]) for x in floats(6, *detail["shape"].tolist())]
    assert_same(stepped(interpreter, steps), stepped(plain, steps))
    (incident,) = interpreter.incidents
    assert incident.count == 2
