"""Applying delegates: what they take, what stays, and what happens when one fails."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest

from delegraph import (
    Delegate,
    DelegateContext,
    DelegateFlags,
    DelegateOptions,
    Interpreter,
    Node,
    OpResolverType,
    Registration,
    Rejection,
    SimpleDelegateKernelInterface,
)
from delegraph.errors import ArgumentError, DelegateError, UnresolvedOpError
from delegraph.schema.options import AddOptions, MulOptions, VarHandleOptions
from delegraph.testing import constant, graph_model, subgraphs_model, tensor
from support.answering import Answering
from support.by_name import ByName, ByNameKernel, X, Y, partitions, run, sines
from support.failing_default import Failing


def test_sin_delegate_gives_four_subsets_in_topological_order() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[ByName("SIN")])
    plan = interpreter.session.subgraphs[0].plan
    assert [plan.node(i)[1].name for i in plan.execution_plan] == [
        "by_name", "ADD", "MUL", "by_name", "ADD",
    ]  # fmt: skip
    assert partitions(interpreter) == [("by_name", (0,)), ("by_name", (3,))]
    np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)


def test_same_result_with_any_choice_of_operators() -> None:
    for ops in (("SIN",), ("ADD",), ("MUL", "ADD"), ("SIN", "ADD", "MUL")):
        interpreter = Interpreter(model_content=sines(), delegates=[ByName(*ops)])
        np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6, err_msg=str(ops))


def test_partition_of_everything_has_the_graphs_inputs_and_outputs() -> None:
    delegate = ByName("SIN", "ADD", "MUL")
    interpreter = Interpreter(model_content=sines(), delegates=[delegate])
    (params,) = delegate.params
    names = [t["name"] for t in interpreter.get_tensor_details()]
    assert [names[i] for i in params.input_tensors] == ["x", "two"]
    assert [names[i] for i in params.output_tensors] == ["y"]
    assert params.nodes_to_replace == (0, 2, 3, 1, 4) or params.nodes_to_replace == (0, 1, 2, 3, 4)


def test_kernel_is_made_once_prepared_at_allocation_and_run_at_each_invoke() -> None:
    delegate = ByName("MUL")
    interpreter = Interpreter(model_content=sines(), delegates=[delegate])
    run(interpreter)
    run(interpreter)
    assert delegate.calls == ["init", "prepare", "eval", "eval"]


def test_second_delegate_sees_the_plan_of_the_first() -> None:
    class Recording(ByName):
        seen: ClassVar[list[str]] = []

        def is_node_supported_by_delegate(
            self, registration: Registration, node: Node, context: DelegateContext
        ) -> bool | Rejection:
            self.seen.append(registration.name)
            return super().is_node_supported_by_delegate(registration, node, context)

    second = Recording("ADD", name="second")
    interpreter = Interpreter(model_content=sines(), delegates=[ByName("SIN"), second])
    assert second.seen == ["by_name", "ADD", "MUL", "by_name", "ADD"]
    np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)


def test_placement_tells_delegate_partition_or_reason_for_every_node() -> None:
    interpreter = Interpreter(
        model_content=sines(), delegates=[ByName("SIN"), ByName("ADD", name="second")]
    )
    placement = interpreter.placement
    assert [n.delegate for n in placement.nodes] == ["by_name", "second", None, "by_name", "second"]
    assert str(placement.nodes[2].rejections["second"]) == "op: is MUL, needs ADD"
    assert set(placement.nodes[2].rejections) == {"by_name", "second"}
    assert str(placement) == (
        "5 nodes: by_name takes 2 in 2 partitions, second takes 2 in 1 partition, "
        "1 stays with Delegraph's kernels"
    )
    assert placement.to_json()["nodes"][0]["partition"] == 0


def test_bare_false_is_recorded_as_no_reason_given() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[Answering(False)])
    assert str(interpreter.placement.nodes[0].rejections["answering"]) == "no reason given"


def test_limits_on_partitions_keep_the_largest() -> None:
    options = DelegateOptions(max_delegated_partitions=1)
    interpreter = Interpreter(
        model_content=sines(), delegates=[ByName("ADD", "MUL", options=options)]
    )
    assert partitions(interpreter) == [("by_name", (1, 2))]
    rejection = interpreter.placement.nodes[4].rejections["by_name"]
    assert rejection.constraint == "max-delegated-partitions"


def test_small_partitions_are_left() -> None:
    options = DelegateOptions(min_nodes_per_partition=2)
    interpreter = Interpreter(model_content=sines(), delegates=[ByName("SIN", options=options)])
    assert partitions(interpreter) == []
    np.testing.assert_allclose(run(interpreter), Y, rtol=1e-6)


def test_failure_in_a_later_subgraph_undoes_the_earlier_ones() -> None:
    add = [("ADD", "x x", "y", AddOptions())]
    mul = [("ADD", "x x", "z", AddOptions()), ("MUL", "z x", "y", MulOptions())]
    model = subgraphs_model([(add, "x", "y", {}), (mul, "x", "y", {})])
    interpreter = Interpreter(model_content=model)
    with pytest.raises(DelegateError, match=r"subgraph 1.*KeyError: 'boom at claim'"):
        interpreter.modify_graph_with_delegate(Failing("claim", n=2, error=KeyError))
    assert interpreter.placement.partitions == ()


def test_validation_subgraphs_are_left_alone() -> None:
    add = [("ADD", "x x", "y", AddOptions())]
    model = subgraphs_model([(add, "x", "y", {})] * 2, names=["main", "VALIDATION:main"])
    interpreter = Interpreter(model_content=model, delegates=[ByName("ADD")])
    assert [p.subgraph for p in interpreter.placement.partitions] == [0]


def test_resize_takes_static_delegates_off_and_allocation_puts_them_back() -> None:
    delegate = ByName("ADD", "MUL")
    model = graph_model(
        [("ADD", "x x", "a", AddOptions()), ("MUL", "a x", "y", MulOptions())],
        inputs="x",
        outputs="y",
    )
    interpreter = Interpreter(model_content=model, delegates=[delegate])
    interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, [4])
    assert delegate.calls.count("init") == 1
    interpreter.resize_tensor_input(0, [6])
    assert interpreter.session.subgraphs[0].plan.execution_plan == [0, 1]
    interpreter.allocate_tensors()
    assert partitions(interpreter) == [("by_name", (0, 1))]
    assert delegate.calls.count("init") == 2


def test_static_delegate_is_refused_on_a_dynamic_graph_with_tensor_and_operator() -> None:
    model = graph_model(
        [("RESHAPE", "x shape", "r"), ("ADD", "r r", "y", AddOptions())],
        inputs="x shape",
        outputs="y",
        tensors={"shape": tensor((1,), "INT32")},
    )
    with pytest.raises(DelegateError, match=r"tensor#2 is a dynamic-sized.*node 0, RESHAPE"):
        Interpreter(model_content=model, delegates=[ByName("ADD")])
    flexible = ByName("ADD", flags=DelegateFlags.ALLOW_DYNAMIC_TENSORS)
    interpreter = Interpreter(model_content=model, delegates=[flexible])
    assert partitions(interpreter) == [("by_name", (1,))]


def test_delegate_claims_an_unresolved_custom_operator() -> None:
    model = graph_model([("Twice", "x", "a"), ("SIN", "a", "y")], inputs="x", outputs="y")
    with pytest.raises(UnresolvedOpError, match=r"Twice \(1 node\)"):
        Interpreter(model_content=model).allocate_tensors()
    interpreter = Interpreter(model_content=model, delegates=[ByName("Twice")])
    np.testing.assert_allclose(run(interpreter), np.sin(2 * X), rtol=1e-6)


def test_control_edges_of_the_metadata_follow_a_shortened_plan() -> None:
    def varints(*values: int) -> bytes:
        return bytes(values)

    edge = varints(1, 1, 1, 6, 2)  # version, subgraphs, pairs, zig-zag 3 -> 1: node 3 before 1
    nodes = [
        ("SIN", "x", "a"),
        ("ADD", "x x", "b", AddOptions()),
        ("SIN", "a", "c"),
        ("SIN", "x", "d"),
    ]
    model = graph_model(
        nodes, inputs="x", outputs="b c d", metadata={"model_control_dependencies": edge}
    )
    interpreter = Interpreter(model_content=model, delegates=[ByName("SIN")])
    assert partitions(interpreter) == [("by_name", (0, 2, 3))]
    second = ByName("ADD", name="second")
    interpreter.modify_graph_with_delegate(second)
    plan = interpreter.session.subgraphs[0].plan
    assert [plan.node(i)[1].name for i in plan.execution_plan] == ["by_name", "second"]


@pytest.mark.parametrize(
    ("edges", "taken"),
    [
        (None, [(0, 2)]),
        (bytes((1, 1, 2, 0, 2, 2, 4)), [(0,), (2,)]),  # 0 before 1, 1 before 2
        (bytes((1, 1, 1, 0, 4)), [(0, 2)]),  # 0 before 2
    ],
)
def test_control_edges_of_the_metadata_keep_nodes_apart(
    edges: bytes | None, taken: list[tuple[int, ...]]
) -> None:
    nodes = [("SIN", "x", "a"), ("ADD", "x x", "b", AddOptions()), ("SIN", "x", "c")]
    metadata = None if edges is None else {"model_control_dependencies": edges}
    model = graph_model(nodes, inputs="x", outputs="a b c", metadata=metadata)
    interpreter = Interpreter(model_content=model, delegates=[ByName("SIN")])
    assert [nodes for _, nodes in partitions(interpreter)] == taken


def test_shapes_that_a_failed_delegate_gave_are_gone() -> None:
    class Reshaping(ByName):
        def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
            class Kernel(ByNameKernel):
                def prepare(self, context: DelegateContext, node: Node) -> None:
                    context.resize_tensor(context.tensors[node.outputs[0]], (7,))
                    raise OSError("no memory on the device")

            return Kernel(self)

    model = graph_model([("SIN", "x", "y")], inputs="x", outputs="y")
    interpreter = Interpreter(model_content=model)
    with pytest.raises(DelegateError, match="no memory on the device"):
        interpreter.modify_graph_with_delegate(Reshaping("SIN"))
    assert interpreter.get_output_details()[0]["shape"].tolist() == [4]


def test_nodes_of_the_model_are_freed_at_the_end() -> None:
    held: list[str] = []

    def init(context: Any, node: Node) -> str:
        held.append(f"node {node.index}")
        return held[-1]

    twice = Registration("Twice", lambda c, n: lambda: None, init=init, free=held.remove)
    model = graph_model([("Twice", "x", "t"), ("Twice", "t", "y")], inputs="x", outputs="y")
    with Interpreter(model_content=model, custom_ops={"Twice": twice}):
        assert held == ["node 0", "node 1"]
    assert held == []


def test_preserved_tensors_give_one_node_in_each_partition() -> None:
    interpreter = Interpreter(
        model_content=sines(),
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        experimental_preserve_all_tensors=True,
        delegates=[ByName("ADD", "MUL", "SIN")],
    )
    assert len(partitions(interpreter)) == 5
    run(interpreter)
    np.testing.assert_allclose(interpreter.get_tensor(1), np.sin(X), rtol=1e-6)


def test_nodes_can_be_replaced_only_while_applying() -> None:
    interpreter = Interpreter(model_content=sines())
    context = interpreter.session.subgraphs[0].context
    with pytest.raises(DelegateError, match="only while"):
        context.replace_node_subsets_with_delegate_kernels(
            Registration("x", lambda c, n: lambda: None), [0], None
        )


class Freeing(Delegate):
    """Takes SIN, a node a partition; counts what its kernels hold."""

    def __init__(self, *, fails_at: int = -1) -> None:
        self.held: list[str] = []
        self.fails_at = fails_at

    def name(self) -> str:
        return "freeing"

    def prepare(self, context: DelegateContext) -> None:
        nodes = [
            i
            for i in context.get_execution_plan()
            if context.get_node_and_registration(i)[1].name == "SIN"
        ]
        registration = Registration(
            "freeing", lambda c, n: lambda: None, init=self._init, free=self.held.remove
        )
        context.replace_node_subsets_with_delegate_kernels(registration, nodes, self)

    def _init(self, context: Any, node: Node) -> str:
        if len(self.held) == self.fails_at:
            raise OSError("no memory on the device")
        self.held.append(f"kernel {len(self.held)}")
        return self.held[-1]


def test_kernels_are_freed_when_their_delegate_is_taken_off() -> None:
    delegate = Freeing()
    with Interpreter(model_content=sines(), delegates=[delegate]) as interpreter:
        assert delegate.held == ["kernel 0", "kernel 1"]
        interpreter.remove_all_delegates()
        assert delegate.held == []
        interpreter.modify_graph_with_delegate(delegate)
        assert delegate.held == ["kernel 0", "kernel 1"]
    assert delegate.held == []  # closed


def test_kernels_are_freed_when_a_later_one_of_their_delegate_fails() -> None:
    delegate = Freeing(fails_at=1)
    with pytest.raises(DelegateError, match="no memory on the device"):
        Interpreter(model_content=sines(), delegates=[delegate])
    assert delegate.held == []


def test_nodes_that_share_a_resource_keep_their_order() -> None:
    """A delegate of both reads would otherwise get them in one partition, before the assignment."""
    nodes = [
        ("VAR_HANDLE", "", "h", VarHandleOptions(shared_name="v")),
        ("READ_VARIABLE", "h", "a"),
        ("ASSIGN_VARIABLE", "h c", ""),
        ("READ_VARIABLE", "h", "b"),
    ]
    tensors = {"h": tensor((), "RESOURCE"), "c": constant(np.zeros(4, np.float32))}
    model = graph_model(nodes, inputs="", outputs="a b", tensors=tensors)
    interpreter = Interpreter(model_content=model)
    context = interpreter.session.subgraphs[0].context
    reads = context.preview_delegate_partitioning([1, 3])
    assert [params.nodes_to_replace for params in reads] == [(1,), (3,)]


def test_context_describes_the_subgraph() -> None:
    interpreter = Interpreter(model_content=sines())
    context = interpreter.session.subgraphs[0].context
    assert (context.inputs, context.outputs, context.subgraph_index) == ((0,), (6,), 0)
    assert [p.nodes_to_replace for p in context.preview_delegate_partitioning([0, 3])] == [
        (0,), (3,),
    ]  # fmt: skip
    with pytest.raises(ArgumentError, match="no node 99"):
        context.get_node_and_registration(99)
    with pytest.raises(ArgumentError, match="no metadata 'x'"):
        context.get_model_metadata("x")


def test_what_is_no_delegate_is_refused_with_its_type() -> None:
    with pytest.raises(ValueError, match="not int"):
        Interpreter(model_content=sines(), delegates=[3])  # type: ignore[list-item]
    with pytest.raises(ValueError, match=r"write delegates=\['sin'\]"):
        Interpreter(model_content=sines(), delegates="sin")


def test_installed_delegate_follows_shapes_known_only_while_invoking() -> None:
    model = graph_model(
        [
            ("RESHAPE", "x shape", "r"),
            ("ADD", "r r", "a", AddOptions()),
            ("ADD", "a r", "y", AddOptions()),
        ],
        inputs="x shape",
        outputs="y",
        tensors={"x": tensor((6,)), "shape": tensor((2,), "INT32")},
    )
    interpreter = Interpreter(model_content=model, delegates=["add_sub"])
    interpreter.allocate_tensors()
    assert partitions(interpreter) == [("add_sub", (1, 2))]
    x = np.arange(6, dtype=np.float32)
    interpreter.set_tensor(0, x)
    for shape in ((2, 3), (3, 2), (3, 2), (1, 6)):
        interpreter.set_tensor(1, np.array(shape, np.int32))
        interpreter.invoke()
        y = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        np.testing.assert_array_equal(y, 3 * x.reshape(shape))
