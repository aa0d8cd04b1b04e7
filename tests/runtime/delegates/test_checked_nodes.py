"""No delegate gets a node that Delegraph's kernels refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph import Delegate, DelegateContext, DelegateFlags, Interpreter, Node, Registration
from delegraph.delegation.rejections import Rejection
from delegraph.errors import DelegateError, NodeError
from delegraph.operators.memory_limit import MemoryLimit
from delegraph.runtime.delegates.checked_nodes import check_nodes
from delegraph.runtime.delegates.node_facts import Findings
from delegraph.schema.options import (
    AddOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    EqualOptions,
    WhereOptions,
)
from delegraph.schema.reader import read_model
from delegraph.schema.writer import write_model
from delegraph.testing import constant, graph_model, tensor
from support.by_name import ByName, doubling_while, partitions, run, sines
from support.policy_models import positive_positions

DYNAMIC = DelegateFlags.ALLOW_DYNAMIC_TENSORS
PROPAGATED = DYNAMIC | DelegateFlags.REQUIRE_PROPAGATED_SHAPES
HINT = DelegateFlags.HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE

REFUSED = "no delegate gets it: Node number 1 (ADD) failed to prepare: "


class Asked(ByName):
    """Notes which nodes it is asked about."""

    def __init__(self, *ops: str, flags: DelegateFlags = DYNAMIC) -> None:
        super().__init__(*ops, flags=flags)
        self.asked: list[int] = []

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        self.asked.append(node.index)
        return super().is_node_supported_by_delegate(registration, node, context)


class TakingAll(Delegate):
    """Claims every node, whatever it is told."""

    @property
    def flags(self) -> DelegateFlags:
        return DYNAMIC

    def name(self) -> str:
        return "taking_all"

    def prepare(self, context: DelegateContext) -> None:
        plan = context.get_execution_plan()
        self.previewed = [
            params.nodes_to_replace for params in context.preview_delegate_partitioning(plan)
        ]
        nothing = Registration(self.name(), lambda context, node: lambda: None)
        context.replace_node_subsets_with_delegate_kernels(nothing, plan, self)


def odd_sizes(size: int = 3) -> bytes:
    """Sines of x, to which a vector of another size is added, then a custom operator."""
    return graph_model(
        [("SIN", "x", "s"), ("ADD", "s b", "a", AddOptions()), ("Odd", "a", "o"),
         ("ADD", "o o", "y", AddOptions()), ("SIN", "x", "t")],
        inputs="x",
        outputs="y t",
        tensors={"x": tensor((2,)), "s": tensor((2,)), "b": constant(np.ones(size, np.float32))},
    )  # fmt: skip


# -- before anything is claimed ------------------------------------------------------------------


@pytest.mark.parametrize("flags", [DYNAMIC, PROPAGATED])
def test_a_refused_node_is_nobodys(flags: DelegateFlags) -> None:
    delegate = Asked("SIN", "ADD", "Odd", flags=flags)
    interpreter = Interpreter(model_content=odd_sizes(), delegates=[delegate])
    assert delegate.asked == [0, 2, 3, 4]
    node = interpreter.placement.nodes[1]
    assert node.delegate is None
    assert node.rejections["by_name"].constraint == "not-well-formed"
    assert str(node.rejections["by_name"]).startswith(REFUSED)
    with pytest.raises(NodeError, match=r"Node number 1 \(ADD\) failed to prepare"):
        interpreter.allocate_tensors()


def test_a_custom_operator_without_kernel_and_what_follows_it_can_be_claimed() -> None:
    delegate = Asked("SIN", "ADD", "Odd")
    interpreter = Interpreter(model_content=odd_sizes(), delegates=[delegate])
    owners = [node.delegate for node in interpreter.placement.nodes]
    assert owners == ["by_name", None, "by_name", "by_name", "by_name"]


def test_one_that_partitions_by_itself_cannot_have_it_either() -> None:
    delegate = TakingAll()
    interpreter = Interpreter(model_content=odd_sizes(), delegates=[delegate])
    assert interpreter.placement.nodes[1].delegate is None
    assert all(1 not in nodes for nodes in delegate.previewed)
    assert sum(map(len, delegate.previewed)) == 4


def test_a_static_delegate_is_not_applied_at_all() -> None:
    model = graph_model([("ADD", "x b", "y", AddOptions())], inputs="x b", outputs="y",
                        tensors={"x": tensor((2,)), "b": tensor((3,))})  # fmt: skip
    with pytest.raises(DelegateError, match=r"Node number 0 \(ADD\) failed to prepare"):
        Interpreter(model_content=model, delegates=[ByName("ADD")])


def test_one_that_must_have_every_node_is_not_applied() -> None:
    with pytest.raises(DelegateError, match=r"left 1, the first of them node 1: no delegate gets"):
        Interpreter(model_content=odd_sizes(), delegates=[TakingAllOrNothing()])


class TakingAllOrNothing(TakingAll):
    @property
    def flags(self) -> DelegateFlags:
        return HINT


def test_a_second_delegate_gets_no_more() -> None:
    delegates = [Asked("SIN"), Asked("ADD", "Odd")]
    interpreter = Interpreter(model_content=odd_sizes(), delegates=delegates)
    assert 1 not in delegates[1].asked
    assert interpreter.placement.nodes[1].delegate is None


def test_the_type_that_a_node_decides_is_what_delegates_see() -> None:
    model = graph_model(
        [("EQUAL", "x x", "y", EqualOptions())],
        inputs="x",
        outputs="y",
        tensors={"x": tensor((2,)), "y": tensor((2,), "STRING")},
    )
    seen = []

    class Looking(ByName):
        def is_node_supported_by_delegate(
            self, registration: Registration, node: Node, context: DelegateContext
        ) -> bool | Rejection:
            seen.append(context.tensors[node.outputs[0]].type.name)
            return False

    interpreter = Interpreter(model_content=model, delegates=[Looking(flags=DYNAMIC)])
    assert seen == ["BOOL"]
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.ones(2, np.float32))
    interpreter.invoke()
    output = interpreter.get_output_details()[0]
    assert interpreter.get_tensor(output["index"]).tolist() == [True, True]


# -- when shapes change ----------------------------------------------------------------------------


def two_inputs() -> bytes:
    return graph_model(
        [("SIN", "x", "s"), ("ADD", "s b", "y", AddOptions())],
        inputs="x b",
        outputs="y",
        tensors={"x": tensor((3,)), "s": tensor((3,)), "b": tensor((2,)), "y": tensor((3,))},
    )


def test_a_shape_that_fits_makes_it_the_delegates() -> None:
    delegate = Asked("SIN", "ADD")
    interpreter = Interpreter(model_content=two_inputs(), delegates=[delegate])
    assert partitions(interpreter) == [("by_name", (0,))]
    interpreter.resize_tensor_input(1, [3])
    interpreter.allocate_tensors()
    assert partitions(interpreter) == [("by_name", (0, 1))]


@pytest.mark.parametrize("flags", [DYNAMIC, PROPAGATED])
def test_a_shape_that_does_not_fit_never_reaches_the_kernel(flags: DelegateFlags) -> None:
    delegate = Asked("SIN", "ADD", flags=flags)
    interpreter = Interpreter(model_content=two_inputs())
    interpreter.resize_tensor_input(1, [3])
    interpreter.modify_graph_with_delegate(delegate)
    interpreter.allocate_tensors()
    prepared = delegate.calls.count("prepare")
    interpreter.resize_tensor_input(1, [5])
    with pytest.raises(NodeError, match=r"Node number 1 \(ADD\) failed to prepare: .*in place of"):
        interpreter.allocate_tensors()
    assert delegate.calls.count("prepare") == prepared


@pytest.mark.parametrize("flags", [DYNAMIC, PROPAGATED])
def test_what_follows_an_open_shape_is_looked_at_while_invoking(flags: DelegateFlags) -> None:
    model = graph_model(
        [("WHERE", "c", "w", WhereOptions()), ("ADD", "w b", "y", AddOptions())],
        inputs="c",
        outputs="y",
        tensors={"c": tensor((4,), "BOOL"), "w": tensor((4, 1), "INT64"),
                 "b": constant(np.ones((3, 1), np.int64)), "y": tensor((4, 1), "INT64")},
    )  # fmt: skip
    delegate = Asked("ADD", flags=flags)
    interpreter = Interpreter(model_content=model, delegates=[delegate])
    assert partitions(interpreter) == [("by_name", (1,))]
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.array([True, True, False, False]))
    with pytest.raises(NodeError, match=r"Node number 1 \(ADD\) failed to prepare: .*in place of"):
        interpreter.invoke()
    assert "prepare" not in delegate.calls


# -- the check itself ------------------------------------------------------------------------------


def findings_of(interpreter: Interpreter) -> Findings:
    subgraph = interpreter.session.subgraphs[0]
    return check_nodes(subgraph.context, subgraph.plan.nodes, MemoryLimit.of_machine())


def test_it_goes_on_past_refused_nodes_and_open_shapes() -> None:
    findings = findings_of(Interpreter(model_content=odd_sizes()))
    assert list(findings.errors) == [1]
    assert findings.known[0].shape == (2,)
    findings = findings_of(Interpreter(model_content=positive_positions()))
    assert findings.errors == {}
    assert sorted(findings.known) == [0, 1, 2]  # x, zero, c; what WHERE gives is open


def test_nodes_that_call_subgraphs_are_left_for_later() -> None:
    interpreter = Interpreter(model_content=doubling_while())
    assert findings_of(interpreter).errors == {}
    assert not any(subgraph.is_allocated for subgraph in interpreter.session.subgraphs)


def test_nobody_sees_other_shapes_afterwards() -> None:
    interpreter = Interpreter(model_content=sines())
    interpreter.resize_tensor_input(0, [9])
    tensors = interpreter.session.subgraphs[0].tensors
    before = [(t.shape, t.data is None, t.allocation_type) for t in tensors]
    findings = findings_of(interpreter)
    assert [(t.shape, t.data is None, t.allocation_type) for t in tensors] == before
    assert {known.shape for known in findings.known.values()} >= {(9,)}


def test_findings_hold_while_what_comes_in_is_the_same() -> None:
    interpreter = Interpreter(model_content=sines())
    subgraph = interpreter.session.subgraphs[0]
    nodes: Any = subgraph.plan.nodes
    findings = findings_of(interpreter)
    assert findings.hold_for(nodes, subgraph.tensors)
    assert findings.hold_for(nodes[1:3], subgraph.tensors)
    interpreter.resize_tensor_input(0, [9])
    assert not findings.hold_for(nodes, subgraph.tensors)


def test_a_graph_that_is_prepared_is_not_prepared_again() -> None:
    interpreter = Interpreter(model_content=sines())
    interpreter.allocate_tensors()
    interpreter.modify_graph_with_delegate(ByName("SIN", flags=DYNAMIC))
    subgraph = interpreter.session.subgraphs[0]
    assert len(subgraph.findings.known) == len(subgraph.spec.tensors)
    x = np.array([0.5, 1.0, 2.0, 0.0], np.float32)
    np.testing.assert_allclose(run(interpreter, x), np.sin(x) + x + np.sin(2 * x), rtol=1e-6)


@pytest.mark.parametrize("remade", ["x", "a"])
def test_the_order_of_nodes_is_kept_where_a_tensor_is_made_again(remade: str) -> None:
    nodes: list[Any] = [("SIN", "x", "a"), ("NEG", remade, "y"), ("COS", "b", remade)]
    model = graph_model([("EXP", "x", "b"), *nodes], inputs="x", outputs="y")
    delegate = Asked("SIN", "NEG", "COS")
    expected = run(Interpreter(model_content=model))
    interpreter = Interpreter(model_content=model, delegates=[delegate])
    assert delegate.asked == []
    np.testing.assert_array_equal(run(interpreter), expected)
    reasons = {str(node.rejections["by_name"]) for node in interpreter.placement.nodes}
    assert all("(COS) makes tensor" in reason for reason in reasons)


def test_nodes_that_wait_for_each_other_are_left_alone() -> None:
    nodes = [("ADD", "x b", "a", AddOptions()), ("SIN", "a", "b"), ("NEG", "b", "y")]
    model = graph_model(nodes, inputs="x", outputs="y")
    delegate = Asked("SIN", "NEG")
    interpreter = Interpreter(model_content=model, delegates=[delegate])
    assert delegate.asked == []
    reasons = [str(node.rejections["by_name"]) for node in interpreter.placement.nodes]
    assert "node 0 (ADD) reads tensor" in reasons[1]
    with pytest.raises(NodeError, match=r"Input tensor \d lacks data"):
        run(interpreter)


def test_an_absent_graph_input_is_no_obstacle() -> None:
    sound = graph_model([("SIN", "x", "y")], inputs="x", outputs="y")
    records = read_model(np.frombuffer(sound, np.uint8))
    (graph,) = records.subgraphs or ()
    graph = graph.replace(inputs=(*(graph.inputs or ()), -1))
    model = write_model(records.replace(subgraphs=(graph,)))
    interpreter = Interpreter(model_content=model, delegates=[Asked("SIN")])
    assert [node.delegate for node in interpreter.placement.nodes] == ["by_name"]
    interpreter.allocate_tensors()
    interpreter.invoke()


def test_weights_of_nodes_that_are_only_checked_are_not_converted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from delegraph.arithmetic import exact_matmul, quantized_product

    def unwanted(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("weights are converted")

    monkeypatch.setattr(quantized_product, "integer_weights", unwanted)
    monkeypatch.setattr(exact_matmul, "column_bounds", unwanted)
    quantized = {"type": "INT8", "scale": 0.5}
    zeros = constant(np.zeros(4, np.int32), scale=0.25)
    content = graph_model(
        [
            ("CONV_2D", "x w b", "y", Conv2DOptions(stride_h=1, stride_w=1)),
            ("DEPTHWISE_CONV_2D", "y v b", "z", DepthwiseConv2DOptions(stride_h=1, stride_w=1)),
        ],
        inputs="x",
        outputs="z",
        tensors={
            "x": tensor((1, 3, 3, 4), **quantized),
            "w": constant(np.ones((4, 1, 1, 4), np.int8), scale=0.5),
            "b": zeros,
            "v": constant(np.ones((1, 3, 3, 4), np.int8), scale=0.5),
            "y": tensor((1, 3, 3, 4), **quantized),
            "z": tensor((1, 3, 3, 4), **quantized),
        },
    )
    found = findings_of(Interpreter(model_content=content, delegates=[]))
    assert not found.errors
    assert len(found.known) == 6
