"""Delegates applied in order, failing, taken off by a resize and applied again."""

from __future__ import annotations

import numpy as np
import pytest

from delegraph import (
    DelegateContext,
    DelegateFlags,
    Interpreter,
    Node,
    PlacementPolicy,
    PlacementRule,
    Registration,
    Rejection,
    SimpleDelegateKernelInterface,
)
from delegraph.errors import DelegateError
from delegraph.testing import graph_model
from support.by_name import ByName, ByNameKernel, X, Y, doubling_while, partitions, run, sines


class Failing(ByName):
    """Cannot make its kernels."""

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        raise OSError("no device")


def assert_fails(interpreter: Interpreter, delegate: ByName) -> None:
    with pytest.raises(DelegateError, match="no device"):
        interpreter.modify_graph_with_delegate(delegate)


def nodes_of(interpreter: Interpreter) -> list[tuple[str, str | None]]:
    return [(node.op, node.delegate) for node in interpreter.placement.nodes]


# -- a delegate that fails -----------------------------------------------------------------------


def test_a_node_that_a_failed_delegate_took_is_not_the_next_ones() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[ByName("SIN", name="first")])
    assert_fails(interpreter, Failing("ADD"))
    interpreter.modify_graph_with_delegate(ByName("MUL", name="third"))
    assert nodes_of(interpreter) == [
        ("SIN", "first"),
        ("ADD", None),
        ("MUL", "third"),
        ("SIN", "first"),
        ("ADD", None),
    ]
    np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)


def test_tensors_that_a_failed_delegate_added_are_gone() -> None:
    class Adding(Failing):
        def is_node_supported_by_delegate(
            self, registration: Registration, node: Node, context: DelegateContext
        ) -> bool | Rejection:
            context.add_tensors(1)
            return super().is_node_supported_by_delegate(registration, node, context)

    interpreter = Interpreter(model_content=sines(), delegates=[ByName("SIN")])
    before = len(interpreter.get_tensor_details())
    assert_fails(interpreter, Adding("ADD"))
    assert len(interpreter.get_tensor_details()) == before


def test_tensors_of_a_failed_delegate_are_nobodys() -> None:
    interpreter = Interpreter(model_content=sines())
    assert_fails(interpreter, Failing("ADD"))
    assert all(t.delegate is None for t in interpreter.session.subgraphs[0].tensors)


def test_a_failed_delegate_gives_the_subgraphs_it_absorbed_free() -> None:
    class Absorbing(Failing):
        def is_node_supported_by_delegate(
            self, registration: Registration, node: Node, context: DelegateContext
        ) -> bool | Rejection:
            if registration.name == "WHILE":
                context.mark_subgraph_as_delegation_skippable(2)
            return super().is_node_supported_by_delegate(registration, node, context)

    interpreter = Interpreter(model_content=doubling_while())
    assert_fails(interpreter, Absorbing("WHILE"))
    interpreter.modify_graph_with_delegate(ByName("ADD"))
    assert [p.subgraph for p in interpreter.placement.partitions] == [2]


def test_nodes_can_be_replaced_only_while_the_delegate_chooses() -> None:
    class Late(ByNameKernel):
        def prepare(self, context: DelegateContext, node: Node) -> None:
            registration = Registration("late", lambda context, node: lambda: None)
            context.replace_node_subsets_with_delegate_kernels(registration, [1], self)

    with pytest.raises(DelegateError, match="only while a delegate is being applied"):
        Interpreter(model_content=sines(), delegates=[ByName("SIN", kernel=Late)])


# -- a resize ------------------------------------------------------------------------------------


class OnlyVectors(ByName):
    """Its kernels refuse anything but vectors."""

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        class Kernel(ByNameKernel):
            def prepare(self, context: DelegateContext, node: Node) -> None:
                if any(len(context.tensors[i].shape) != 1 for i in node.inputs):
                    raise ValueError("only vectors")
                super().prepare(context, node)

        return Kernel(self)


def test_a_delegate_that_cannot_come_back_after_a_resize_is_an_error_and_stays_off() -> None:
    delegates = [ByName("ADD", name="before"), OnlyVectors("SIN"), ByName("MUL", name="after")]
    interpreter = Interpreter(model_content=sines(), delegates=delegates)
    interpreter.resize_tensor_input(0, [1, 4])
    with pytest.raises(DelegateError, match="only vectors"):
        interpreter.allocate_tensors()
    assert interpreter.incidents == ()
    np.testing.assert_allclose(run(interpreter, X[None]), Y[None], rtol=1e-6)
    assert partitions(interpreter) == [("before", (1, 4))]


def test_between_resize_and_allocation_the_placement_tells_and_applies_nothing() -> None:
    delegate = ByName("SIN")
    interpreter = Interpreter(model_content=sines(), delegates=[delegate])
    made = delegate.calls.count("init")
    interpreter.resize_tensor_input(0, [1, 4])
    placement = interpreter.placement
    assert delegate.calls.count("init") == made
    assert placement.partitions == ()
    assert {node.rejections["by_name"].constraint for node in placement.nodes} == {"resized"}
    interpreter.allocate_tensors()
    assert partitions(interpreter) == [("by_name", (0,)), ("by_name", (3,))]
    reasons = [set(node.rejections) for node in interpreter.placement.nodes]
    assert reasons == [set(), {"by_name"}, {"by_name"}, set(), {"by_name"}]


def test_a_dynamic_delegate_alone_stays_on() -> None:
    delegate = ByName("SIN", flags=DelegateFlags.ALLOW_DYNAMIC_TENSORS)
    interpreter = Interpreter(model_content=sines(), delegates=[delegate])
    interpreter.resize_tensor_input(0, [1, 4])
    assert len(partitions(interpreter)) == 2
    assert delegate.calls.count("init") == 2


def test_rules_are_checked_with_the_delegates_that_come_back() -> None:
    rules = [PlacementRule("pin", "by_name", operators="SIN")]
    interpreter = Interpreter(
        model_content=sines(), delegates=[ByName("SIN")], placement=PlacementPolicy(rules=rules)
    )
    interpreter.resize_tensor_input(0, [1, 4])
    np.testing.assert_allclose(run(interpreter, X[None]), Y[None], rtol=1e-6)


def test_called_subgraphs_get_their_delegates_back_when_they_are_allocated() -> None:
    interpreter = Interpreter(model_content=doubling_while(), delegates=[ByName("ADD")])
    interpreter.resize_tensor_input(0, [1, 1])
    np.testing.assert_array_equal(run(interpreter, np.float32([[3]])), [[12]])
    assert [p.subgraph for p in interpreter.placement.partitions] == [2]


def test_a_subgraph_called_by_hand_gets_its_delegates_back() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[ByName("SIN")])
    callee = interpreter.subgraph()
    callee.resize_input(0, (2, 4))
    assert partitions(interpreter) == []
    callee.allocate()
    assert len(partitions(interpreter)) == 2


def test_data_is_gone_from_a_resize_to_the_next_allocation() -> None:
    model = graph_model([("SIN", "x", "y")], inputs="x", outputs="y")
    interpreter = Interpreter(model_content=model)
    run(interpreter)
    interpreter.resize_tensor_input(0, [2, 4])
    with pytest.raises(ValueError, match="Tensor data is null"):
        interpreter.get_tensor(0)
    with pytest.raises(ValueError, match="Tensor is unallocated"):
        interpreter.set_tensor(0, np.zeros((2, 4), np.float32))
