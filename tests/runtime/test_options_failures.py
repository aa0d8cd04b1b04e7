"""What an interpreter does about delegates that fail."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from delegraph import (
    Delegate,
    DelegateContext,
    FailurePolicy,
    Interpreter,
    Node,
    Registration,
    SimpleDelegateKernelInterface,
)
from delegraph.delegation.driver import SimpleDelegate
from delegraph.delegation.incident import Incident
from delegraph.errors import ArgumentError, DelegateError, DelegateNodeError
from delegraph.operators.registration import InPlace
from delegraph.runtime.delegates.incidents import Incidents, Supervision
from delegraph.testing import graph_model
from support.answering import Answering
from support.by_name import ByName, ByNameKernel, partitions, sines
from support.corpus import corpus_file, needs_corpus
from support.faulty_delegate import Fault, Faulty, FaultyKernel, failing, first_output, spoil
from support.own_model import OwnModelKernel
from support.policy_models import (
    MODELS,
    assert_same,
    counting,
    delegated,
    floats,
    stepped,
    undelegated,
)

FALLBACK = FailurePolicy(on_failure="fallback")

# -- raise ---------------------------------------------------------------------------------------


def test_without_a_policy_the_error_names_delegate_nodes_phase_and_cause() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[Faulty(fault=failing())])
    with pytest.raises(
        DelegateNodeError,
        match=r"\(faulty\) failed to invoke: OSError: device lost \(delegate 'faulty', in place of "
        r"nodes 0, 1, 2, 3, 4\)",
    ) as caught:
        stepped(interpreter, floats(1))
    assert (caught.value.delegate, caught.value.phase) == ("faulty", "eval")
    assert isinstance(caught.value.__cause__, OSError)
    assert interpreter.incidents == ()


@pytest.mark.parametrize("wrong", ["yes", "no", 1, None])
def test_validate_is_a_bool(wrong: Any) -> None:
    with pytest.raises(TypeError, match="validate is True or False, not"):
        FailurePolicy(validate=wrong)


def test_a_policy_and_a_share_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ArgumentError, match="'ignore', expected one of 'raise', 'fallback', 'sha"):
        FailurePolicy(on_failure="ignore")  # type: ignore[arg-type]  # wrong on purpose
    for share in (0.0, -0.5, 1.01):
        with pytest.raises(ArgumentError, match=f"shadow_share is {share}, expected 0 < share"):
            FailurePolicy(shadow_share=share)
    assert FailurePolicy(shadow_share=1.0).shadow_share == 1


@pytest.mark.parametrize(
    ("share", "due"), [(1.0, range(20)), (0.5, range(0, 20, 2)), (0.1, (0, 10)), (0.05, (0,))]
)
def test_a_share_of_the_runs_is_due_and_the_first_always(share: float, due: Any) -> None:
    supervision = Supervision()
    assert [run for run in range(20) if supervision.is_due(0, 7, share)] == list(due)
    assert supervision.is_due(0, 8, share)
    assert supervision.is_due(1, 7, share)


def test_an_incident_says_how_often_and_whether_its_delegate_is_out() -> None:
    once = Incident("npu", 1, 5, (2, 3), "eval", "OSError: bus")
    text = "delegate 'npu', node 5 of subgraph 1, eval: OSError: bus"
    assert str(once) == text
    assert str(replace(once, count=2, is_quarantined=True)) == f"{text} (2 times); quarantined"
    assert once.to_json() == {
        "delegate": "npu",
        "subgraph": 1,
        "node_index": 5,
        "nodes": [2, 3],
        "phase": "eval",
        "error": "OSError: bus",
        "count": 1,
        "is_quarantined": False,
        "place": "",
    }


def test_equal_incidents_are_counted_and_different_ones_kept_up_to_a_limit(
    caplog: pytest.LogCaptureFixture,
) -> None:
    incidents = Incidents()
    with caplog.at_level(logging.WARNING):
        for number in range(1100):
            incidents.record(Incident("npu", 0, 5, (), "eval", f"error {number}"))
            incidents.record(Incident("npu", 0, 5, (), "eval", "error 0"))
    found = incidents.all()
    assert [incident.error for incident in found] == [f"error {i}" for i in range(1000)]
    assert [incident.count for incident in found[:2]] == [1101, 1]
    assert len(caplog.records) == 1000


def test_without_a_policy_nothing_is_wrapped() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[Faulty("SIN")])
    stepped(interpreter, floats(1))
    (step, *_) = interpreter.session.subgraphs[0].steps.evals
    assert step.__module__ == SimpleDelegate.__module__


# -- fallback ------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["fallback", "shadow"])
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_results_are_right_whenever_the_delegate_fails(name: str, every: int, policy: Any) -> None:
    delegate = Faulty(fault=failing(every), dynamic=True)
    interpreter, results = delegated(name, delegate, failures=FailurePolicy(on_failure=policy))
    assert_same(results, undelegated(name))
    assert sum(incident.count for incident in interpreter.incidents) == delegate.runs // every
    for incident in interpreter.incidents:
        assert (incident.delegate, incident.phase) == ("faulty", "eval")
        assert incident.error == "OSError: device lost"
        assert not incident.is_quarantined


@pytest.mark.parametrize("name", ["chain", "resized", "variable"])
def test_static_delegates_fall_back_as_well(name: str) -> None:
    interpreter, results = delegated(name, Faulty(fault=failing(2)), failures=FALLBACK)
    assert_same(results, undelegated(name))
    assert sum(incident.count for incident in interpreter.incidents) >= 3


@pytest.mark.parametrize(("name", "ops"), [("variable", ()), ("resource", ()), ("branch", ("IF",))])
def test_a_state_left_half_done_is_put_back(name: str, ops: tuple[str, ...]) -> None:
    """Each failing run has advanced the state already; the kernels start from the one before."""
    delegate = Faulty(*ops, fault=failing(2), dynamic=True)
    interpreter, results = delegated(name, delegate, failures=FALLBACK)
    assert_same(results, undelegated(name))
    assert interpreter.incidents[0].count == 3


def test_a_variable_that_a_failing_run_replaced_is_back() -> None:
    def replace(context: Any, node: Node, run: int) -> None:
        context.tensors[context.variables[0]].data = np.full((1, 1), 9, np.float32)
        raise OSError("device lost")

    _, results = delegated("variable", Faulty(fault=replace), failures=FALLBACK)
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

    _, results = delegated("variable", Keeping(fault=keep), failures=FALLBACK)
    assert_same(results, undelegated("variable"))


def test_a_resource_that_a_failing_run_made_is_gone() -> None:
    interpreter = Interpreter(
        model_content=counting(), delegates=[Faulty(dynamic=True)], failures=FALLBACK
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
        interpreter, _ = delegated("chain", Faulty(fault=failing()), failures=FALLBACK)
    assert [record.message for record in caplog.records] == [
        "delegate 'faulty', node 5 of subgraph 0 in place of node 0 (SIN, 'a') to "
        "node 4 (ADD, 'y'), eval: OSError: device lost; Delegraph's kernels take over"
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
        "resized", Faulty(at_prepare=refuse, dynamic=dynamic), failures=FALLBACK
    )
    assert_same(results, undelegated("resized"))
    (incident,) = interpreter.incidents
    assert (incident.phase, incident.error) == ("prepare", "ValueError: too many rows")


def test_shapes_known_only_while_invoking_are_found_when_preparing_fails() -> None:
    def refuse(context: Any, node: Node, run: int) -> None:
        raise ValueError("no")

    for ops in ((), ("WHERE",), ("CAST", "MUL")):
        delegate = Faulty(*ops, before_prepare=refuse, dynamic=True)
        interpreter, results = delegated("dynamic", delegate, failures=FALLBACK)
        assert_same(results, undelegated("dynamic"))
        assert interpreter.incidents[0].phase == "prepare"


def test_a_claim_that_fails_is_an_error_whatever_the_policy() -> None:
    class Broken(Faulty):
        def is_node_supported_by_delegate(self, *asked: Any) -> bool:
            raise ValueError("no")

    interpreter = Interpreter(model_content=sines(), failures=FALLBACK)
    with pytest.raises(DelegateError, match=r"'faulty' could not be applied.*ValueError: no"):
        interpreter.modify_graph_with_delegate(Broken())
    assert_same(stepped(interpreter, floats(7)), undelegated("chain"))
    assert interpreter.incidents == ()


@pytest.mark.parametrize("phase", ["init", "prepare"])
def test_a_partition_that_cannot_be_begun_costs_only_itself(phase: str) -> None:
    delegate = FailsForMul(phase)
    with Interpreter(model_content=sines(), delegates=[delegate], failures=FALLBACK) as made:
        x = floats(7)
        expected = stepped(Interpreter(model_content=sines()), x)
        assert_same(stepped(made, x), expected)
        (incident,) = made.incidents
        assert (incident.phase, incident.nodes) == (phase, (1, 2))
        assert "no room for MUL" in incident.error
        assert delegate.calls.count("eval") > 0
        if phase == "init":  # these nodes stay with the kernels, and the placement tells
            assert partitions(made) == [("by_name", (4,))]
            rejection = made.placement.nodes[2].rejections["by_name"]
            assert (rejection.constraint, str(rejection)) == ("init-failed", incident.error)


@pytest.mark.parametrize("phase", ["init", "prepare"])
def test_by_default_the_graph_is_as_it_was(phase: str) -> None:
    with Interpreter(model_content=sines()) as made:
        with pytest.raises(DelegateError, match=f"{phase} failed:.*no room for MUL") as e:
            made.modify_graph_with_delegate(FailsForMul(phase))
        assert e.value.phase == phase
        assert partitions(made) == []


class FailsForMul(ByName):
    """Takes nodes 1, 2 and 4 of sines in two partitions; the kernel that gets MUL fails."""

    def __init__(self, phase: str) -> None:
        super().__init__("ADD", "MUL", kernel=FailsForMulKernel)
        self.phase = phase


class FailsForMulKernel(ByNameKernel):
    delegate: FailsForMul

    def init(self, context: Any, params: Any) -> None:
        super().init(context, params)
        self.fail_in("init")

    def prepare(self, context: Any, node: Node) -> None:
        super().prepare(context, node)
        self.fail_in("prepare")

    def fail_in(self, phase: str) -> None:
        names = [registration.name for _, registration in self.nodes]
        if phase == self.delegate.phase and "MUL" in names:
            raise ValueError("no room for MUL")


def _stale(context: Any, node: Node, run: int) -> None:
    for index in node.outputs:
        y = context.tensors[index]
        context.set_buffer_handle(y, 7, node.delegate)
        y.data[...], y.data_is_stale = 77, True


def test_a_buffer_that_cannot_be_copied_falls_back() -> None:
    for ops in ((), ("SIN",)):
        interpreter, results = delegated("chain", Faulty(*ops, fault=_stale), failures=FALLBACK)
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
        failures=FALLBACK,
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

    _, results = delegated("chain", Keeping(fault=keep), failures=FALLBACK)
    assert_same(written, results)


def test_a_buffer_that_the_results_cannot_be_copied_to_is_given_up() -> None:
    freed: list[int] = []

    class Keeping(Faulty):
        def copy_to_buffer_handle(self, context: DelegateContext, tensor: Any) -> None:
            raise OSError("bus fell asleep")

        def free_buffer_handle(self, context: DelegateContext, handle: int) -> None:
            freed.append(handle)

    def keep(context: Any, node: Node, run: int) -> None:
        context.set_buffer_handle(context.tensors[node.outputs[0]], run, node.delegate)
        raise OSError("device lost")

    delegate = Keeping(fault=keep)
    interpreter, results = delegated("chain", delegate, failures=FALLBACK)
    assert_same(results, undelegated("chain"))
    assert {incident.phase for incident in interpreter.incidents} == {"eval", "copy"}
    assert len(freed) == len(set(freed)) == delegate.runs


@pytest.mark.parametrize("failing_one", ["earlier", "later", "both"])
def test_stacked_delegates_fall_back_one_by_one(failing_one: str) -> None:
    def fault(name: str) -> Fault:
        return failing() if failing_one in (name, "both") else first_output(lambda y: None)

    earlier = Faulty("SIN", name="earlier", fault=fault("earlier"))
    later = Faulty("ADD", "earlier", name="later", fault=fault("later"))
    interpreter = Interpreter(model_content=sines(), delegates=[earlier, later], failures=FALLBACK)
    assert_same(stepped(interpreter, floats(7)), undelegated("chain"))
    assert {incident.delegate for incident in interpreter.incidents}.issubset({"earlier", "later"})
    assert interpreter.incidents


def test_arrays_that_a_failing_delegate_put_in_place_are_taken_away() -> None:
    def replace(context: Any, node: Node, run: int) -> None:
        y = context.tensors[node.outputs[0]]
        y.data, y.shape = np.zeros((5, 5)), (5, 5)
        raise OSError("device lost")

    _, results = delegated("chain", Faulty(fault=replace), failures=FALLBACK)
    assert_same(results, undelegated("chain"))


class InPlaceSine(Delegate):
    """Computes in the memory of its input, as its registration allows; fails in the middle."""

    def name(self) -> str:
        return "in_place"

    def prepare(self, context: DelegateContext) -> None:
        def prepare(context: Any, node: Node) -> Any:
            x, y = (context.tensors[i] for i in (*node.inputs, *node.outputs))

            def run() -> None:
                np.sin(x.data, out=y.data)
                raise OSError("device lost")

            return run

        inplace = InPlace.INPUT_0
        registration = Registration("in_place", prepare, inplace=inplace)
        context.replace_node_subsets_with_delegate_kernels(registration, [1], self)


def test_inputs_outlast_a_failing_node_that_works_in_place() -> None:
    model = graph_model(
        [("SIN", "x", "a"), ("SIN", "a", "b"), ("SIN", "b", "y")], inputs="x", outputs="y"
    )
    interpreter = Interpreter(model_content=model, delegates=[InPlaceSine()], failures=FALLBACK)
    steps = floats(2)
    assert_same(stepped(interpreter, steps), stepped(Interpreter(model_content=model), steps))
    assert interpreter.incidents[0].count == 2


def test_interrupts_get_through() -> None:
    for stop in (KeyboardInterrupt, SystemExit):
        delegate = Faulty(fault=failing(error=stop()))
        interpreter = Interpreter(model_content=sines(), delegates=[delegate], failures=FALLBACK)
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
        failures=FailurePolicy(on_failure=policy, validate=True),
    )
    steps = floats(2)
    assert_same(stepped(interpreter, steps[:1]), steps[:1])
    with pytest.raises(
        DelegateNodeError,
        match=r"OSError: device lost; Delegraph's kernels cannot take over: Node number 0 \(Odd\)",
    ):
        stepped(interpreter, steps[1:])
    assert_same(stepped(interpreter, steps[:1]), steps[:1])


# -- a real model --------------------------------------------------------------------------------


class Whole(Answering):
    """Takes everything and runs it as a model of its own; fails every third time."""

    def __init__(self) -> None:
        super().__init__(True)
        self.runs = 0

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return _WholeKernel(self)


class _WholeKernel(OwnModelKernel):
    def __init__(self, delegate: Whole) -> None:
        self.delegate = delegate

    def eval(self, context: DelegateContext, node: Node) -> None:
        super().eval(context, node)
        self.delegate.runs += 1
        if self.delegate.runs % 3 == 0:
            spoil(context.tensors[self.outputs[0]].data)
            raise OSError("device lost")


@pytest.mark.repetition(1)
@needs_corpus
@pytest.mark.parametrize(
    "name", ["test_data__mobilenet_v1_0.25_128_quant", "support__mobilenet_v1_0.25_224_1_default_1"]
)
def test_a_mobilenet_keeps_its_results_bit_for_bit(name: str) -> None:
    path = str(corpus_file(name))
    interpreter = Interpreter(path, delegates=[Whole()], failures=FALLBACK)
    plain = Interpreter(path)
    detail = plain.get_input_details()[0]
    steps = [(x * 40 + 128).astype(detail["dtype"]) for x in floats(6, *detail["shape"].tolist())]
    assert_same(stepped(interpreter, steps), stepped(plain, steps))
    (incident,) = interpreter.incidents
    assert incident.count == 2
