"""Delegates come and go at any time; nothing is refused because a graph was final."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph import (
    DelegateContext,
    DelegateFlags,
    DelegateParams,
    FailurePolicy,
    Interpreter,
    Node,
    Registration,
    Rejection,
    SimpleDelegateKernelInterface,
)
from delegraph.errors import ArgumentError, DelegateError, StateError
from delegraph.schema.options import AddOptions
from delegraph.testing import graph_model, tensor
from support.by_name import ByName, ByNameKernel, X, Y, doubling_while, partitions, run, sines
from support.running import result_of

DYNAMIC = DelegateFlags.ALLOW_DYNAMIC_TENSORS


@pytest.mark.parametrize("flags", [DelegateFlags.NONE, DYNAMIC])
def test_delegates_can_be_added_and_removed_between_invokes_with_data_in_place(
    flags: DelegateFlags,
) -> None:
    interpreter = Interpreter(model_content=sines())
    np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)
    for ops in (["SIN"], ["ADD"], ["MUL"]):
        interpreter.modify_graph_with_delegate(ByName(*ops, flags=flags, name=ops[0]))
        np.testing.assert_allclose(result_of(interpreter), Y, rtol=1e-6)
    assert len(partitions(interpreter)) == 4
    interpreter.remove_all_delegates()
    np.testing.assert_allclose(result_of(interpreter), Y, rtol=1e-6)
    assert partitions(interpreter) == []
    assert interpreter.placement.delegates == ()


def test_a_delegate_of_every_kind_can_follow_every_other() -> None:
    """In TFLite a static delegate behind a dynamic one, or the reverse, may reset the graph."""
    for first in (DelegateFlags.NONE, DYNAMIC):
        for second in (DelegateFlags.NONE, DYNAMIC):
            delegates = [ByName("SIN", flags=first), ByName("ADD", flags=second, name="second")]
            interpreter = Interpreter(model_content=sines(), delegates=delegates)
            np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)
            interpreter.resize_tensor_input(0, [1, 4])
            np.testing.assert_allclose(run(interpreter, X[None]), Y[None], rtol=1e-6)
            assert len(partitions(interpreter)) == 3, (first, second)


def test_a_delegate_that_fails_leaves_an_allocated_interpreter_allocated() -> None:
    class Failing(ByName):
        def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
            raise OSError("no device")

    interpreter = Interpreter(model_content=sines(), delegates=[ByName("SIN")])
    run(interpreter)
    with pytest.raises(DelegateError, match=r"'by_name' could not be applied.*no device"):
        interpreter.modify_graph_with_delegate(Failing("ADD"))
    np.testing.assert_allclose(result_of(interpreter), Y, rtol=1e-6)
    assert len(partitions(interpreter)) == 2


def test_variables_keep_their_state_when_delegates_come_and_go() -> None:
    from dataclasses import replace

    model = graph_model(
        [("ADD", "x v", "y", AddOptions())],
        inputs="x",
        outputs="y",
        tensors={"v": replace(tensor((4,)), is_variable=True)},
    )
    interpreter = Interpreter(model_content=model)
    run(interpreter)
    names = {t["name"]: t["index"] for t in interpreter.get_tensor_details()}
    interpreter.set_tensor(names["v"], np.full(4, 5, np.float32))
    interpreter.modify_graph_with_delegate(ByName("ADD"))
    np.testing.assert_allclose(result_of(interpreter), X + 5)
    interpreter.modify_graph_with_delegate(ByName("SIN", name="other"))
    interpreter.remove_delegate("other")
    np.testing.assert_allclose(result_of(interpreter), X + 5)
    interpreter.remove_all_delegates()
    np.testing.assert_allclose(result_of(interpreter), X + 5)


@pytest.mark.parametrize("flags", [DelegateFlags.NONE, DYNAMIC])
@pytest.mark.parametrize("name", ["SIN", "ADD", "MUL"])
def test_one_delegate_comes_off_and_the_others_stay(name: str, flags: DelegateFlags) -> None:
    names = ["SIN", "ADD", "MUL"]
    interpreter = Interpreter(
        model_content=sines(), delegates=[ByName(op, flags=flags, name=op) for op in names]
    )
    run(interpreter)
    interpreter.remove_delegate(name)
    np.testing.assert_allclose(result_of(interpreter), Y, rtol=1e-6)
    names.remove(name)
    assert interpreter.placement.delegates == tuple(names)
    assert {p.delegate for p in interpreter.placement.partitions} == set(names)


def test_what_the_removed_delegate_had_goes_to_those_that_came_after_it() -> None:
    first, second = ByName("SIN", name="first"), ByName("SIN", "ADD", name="second")
    interpreter = Interpreter(model_content=sines(), delegates=[first, second])
    interpreter.remove_delegate("first")
    alone = Interpreter(model_content=sines(), delegates=[ByName("SIN", "ADD", name="second")])
    assert interpreter.placement.to_json() == alone.placement.to_json()
    np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)


def test_all_delegates_of_a_name_come_off() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[ByName("SIN"), ByName("ADD")])
    interpreter.remove_delegate("by_name")
    assert interpreter.placement.delegates == ()


def test_a_delegate_that_a_resize_took_off_is_gone_for_good_when_removed() -> None:
    delegates = [ByName("SIN", name="sin"), ByName("ADD", name="add")]
    interpreter = Interpreter(model_content=sines(), delegates=delegates)
    interpreter.resize_tensor_input(0, [1, 4])
    interpreter.remove_delegate("sin")
    np.testing.assert_allclose(run(interpreter, X[None]), Y[None], rtol=1e-6)
    assert interpreter.placement.delegates == ("add",)


def test_removing_a_delegate_that_is_not_applied_names_those_that_are() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[ByName("SIN")])
    with pytest.raises(ArgumentError, match=r"no delegate 'x' is applied; applied are: 'by_name'"):
        interpreter.remove_delegate("x")
    assert len(partitions(interpreter)) == 2
    interpreter.remove_all_delegates()
    with pytest.raises(ArgumentError, match="no delegate 'by_name' is applied; applied are: none"):
        interpreter.remove_delegate("by_name")


def test_a_delegate_that_cannot_be_applied_anew_is_off_and_the_model_runs() -> None:
    class Once(ByName):
        def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
            if "init" in self.calls:
                raise OSError("the device is gone")
            return super().create_delegate_kernel_interface()

    delegates = [ByName("SIN", name="sin"), ByName("MUL", name="mul"), Once("ADD", name="once")]
    interpreter = Interpreter(
        model_content=sines(), delegates=[*delegates, ByName("SIN", name="last")]
    )
    run(interpreter)
    with pytest.raises(DelegateError, match=r"'once' could not be applied.*the device is gone"):
        interpreter.remove_delegate("sin")
    assert interpreter.placement.delegates == ("mul",)
    np.testing.assert_allclose(result_of(interpreter), Y, rtol=1e-6)


def test_delegates_that_a_resize_took_off_are_gone_for_good_when_removed() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[ByName("SIN")])
    interpreter.resize_tensor_input(0, [1, 4])
    interpreter.remove_all_delegates()
    np.testing.assert_allclose(run(interpreter, X[None]), Y[None], rtol=1e-6)
    assert partitions(interpreter) == []


def test_removing_is_refused_while_a_view_is_alive() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[ByName("SIN")])
    interpreter.allocate_tensors()
    view = interpreter.tensor(0)()
    with pytest.raises(StateError, match="reference to internal data"):
        interpreter.remove_all_delegates()
    del view
    interpreter.remove_all_delegates()


# -- other subgraphs ---------------------------------------------------------------------------


class Looping(ByName):
    """Takes WHILE together with the subgraphs it calls."""

    def __init__(self) -> None:
        super().__init__("WHILE", "ADD", name="looping")
        self.bodies: list[list[str]] = []

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        if registration.name == "WHILE":
            body = context.acquire_subgraph_context(node.options.body_subgraph_index)
            plan = body.get_execution_plan()
            self.bodies.append([body.get_node_and_registration(i)[1].name for i in plan])
            for index in (node.options.cond_subgraph_index, node.options.body_subgraph_index):
                context.mark_subgraph_as_delegation_skippable(index)
        return super().is_node_supported_by_delegate(registration, node, context)

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        return LoopKernel()


class LoopKernel(SimpleDelegateKernelInterface):
    def init(self, context: DelegateContext, params: DelegateParams) -> None:
        pass

    def prepare(self, context: DelegateContext, node: Node) -> None:
        pass

    def eval(self, context: DelegateContext, node: Node) -> None:
        x = context.tensors[node.inputs[0]].data.copy()
        while x[0] < 10:
            x = x + x
        context.tensors[node.outputs[0]].data[...] = x


def test_each_subgraph_is_delegated_on_its_own() -> None:
    interpreter = Interpreter(model_content=doubling_while(), delegates=[ByName("ADD")])
    assert [(p.subgraph, p.nodes) for p in interpreter.placement.partitions] == [(2, (0,))]
    np.testing.assert_array_equal(run(interpreter, np.float32([3])), [12])


def test_a_delegate_absorbs_the_subgraphs_of_a_node_it_takes() -> None:
    delegate = Looping()
    interpreter = Interpreter(model_content=doubling_while(), delegates=[delegate])
    assert delegate.bodies == [["ADD"]]
    assert [p.subgraph for p in interpreter.placement.partitions] == [0]
    np.testing.assert_array_equal(run(interpreter, np.float32([3])), [12])
    interpreter.modify_graph_with_delegate(ByName("ADD"))
    assert [p.subgraph for p in interpreter.placement.partitions] == [0]


def test_an_absorbed_subgraph_is_free_again_when_its_delegate_comes_off() -> None:
    interpreter = Interpreter(model_content=doubling_while(), delegates=[Looping(), ByName("ADD")])
    interpreter.remove_delegate("looping")
    assert [p.subgraph for p in interpreter.placement.partitions] == [2]
    np.testing.assert_array_equal(run(interpreter, np.float32([3])), [12])


def test_a_resize_gives_absorbed_subgraphs_free_and_allocation_absorbs_them_again() -> None:
    interpreter = Interpreter(model_content=doubling_while(), delegates=[Looping()])
    interpreter.resize_tensor_input(0, [1, 1])
    interpreter.resize_tensor_input(0, [1])
    np.testing.assert_array_equal(run(interpreter, np.float32([3])), [12])
    assert [p.subgraph for p in interpreter.placement.partitions] == [0]


def test_only_other_subgraphs_can_be_absorbed_and_only_while_applying() -> None:
    interpreter = Interpreter(model_content=doubling_while())
    context = interpreter.session.subgraphs[0].context
    with pytest.raises(ArgumentError, match="no subgraph 9; the model has 3"):
        context.acquire_subgraph_context(9)
    with pytest.raises(ArgumentError, match="cannot be skipped"):
        context.mark_subgraph_as_delegation_skippable(0)
    with pytest.raises(DelegateError, match="only while a delegate is being applied"):
        context.mark_subgraph_as_delegation_skippable(1)


def test_a_delegate_that_keeps_its_results_to_itself_works_in_a_loop_body() -> None:
    """The loop reads what its body returns, and that is in the delegate's buffer."""

    class Keeping(ByName):
        def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
            delegate = self

            class Kernel(ByNameKernel):
                def eval(self, context: DelegateContext, node: Node) -> None:
                    super().eval(context, node)
                    target = context.tensors[node.outputs[0]]
                    delegate.kept = target.data.copy()
                    target.data[...] = np.nan
                    target.buffer_handle, target.data_is_stale = 1, True

            return Kernel(self)

        def copy_from_buffer_handle(self, context: DelegateContext, tensor: Any) -> None:
            np.copyto(tensor.data, self.kept)

        kept: Any = None

    interpreter = Interpreter(model_content=doubling_while(), delegates=[Keeping("ADD")])
    np.testing.assert_array_equal(run(interpreter, np.float32([3])), [12])


def test_a_delegate_that_cannot_come_back_after_a_resize_stays_off_as_an_incident() -> None:
    class OnlyOnce(ByName):
        def initialize(self, context: DelegateContext) -> None:
            if self.params:
                raise OSError("device is taken")

    delegates = [OnlyOnce("SIN", name="once"), ByName("ADD")]
    interpreter = Interpreter(
        model_content=sines(), delegates=delegates, failures=FailurePolicy(on_failure="fallback")
    )
    interpreter.resize_tensor_input(0, [1, 4])
    np.testing.assert_allclose(run(interpreter, X[None]), Y[None], rtol=1e-6)
    (incident,) = interpreter.incidents
    assert (incident.delegate, incident.phase) == ("once", "initialize")
    assert (incident.node_index, incident.nodes) == (-1, ())
    assert {p.delegate for p in interpreter.placement.partitions} == {"by_name"}
