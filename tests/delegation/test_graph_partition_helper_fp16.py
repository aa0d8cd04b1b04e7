"""Looking through DEQUANTIZE: nodes read float16 constants as long as a delegate has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from delegraph import (
    Delegate,
    DelegateContext,
    DelegateParams,
    FP16GraphPartitionHelper,
    Interpreter,
    Node,
    PlacementPolicy,
    Registration,
    Rejection,
)
from delegraph.delegation.rules import PlacementRule
from delegraph.errors import DelegateError
from delegraph.operators.registration import Eval
from delegraph.schema.enums import TensorType
from delegraph.schema.options import AddOptions, MulOptions
from delegraph.testing import constant, graph_model, tensor
from support.corpus import corpus_file, corpus_rows, needs_corpus
from support.looking import Looking


class Float16(Delegate):
    """Takes operators by name, float16 constants included, and computes by Delegraph's kernels.

    The kernels are shown the constants as float32. Needs partitions of one node.
    """

    def __init__(self, *ops: str, n: int | None = None, takes_all: bool = False) -> None:
        self._ops, self._n, self._takes_all = ops, n, takes_all
        self.partitions: list[tuple[int, ...]] = []
        self.read: list[TensorType] = []
        self._rejections: dict[int, Rejection] = {}

    def name(self) -> str:
        return "float16"

    def rejections(self) -> dict[int, Rejection]:
        return self._rejections

    def prepare(self, context: DelegateContext) -> None:
        self.partitions, self.read = [], []
        helper = FP16GraphPartitionHelper(context, self.supports, delegate=self.name())
        helper.partition()
        nodes = helper.get_nodes_of_first_n_largest_partitions(self._n)
        self._rejections = helper.rejections
        context.replace_node_subsets_with_delegate_kernels(
            Registration(self.name(), _prepare_shown, init=self._init, uses_blas=True), nodes, self
        )

    def supports(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        self.read += [context.tensors[i].type for i in node.inputs[1:2]]
        return self._takes_all or registration.name in self._ops or Rejection("op")

    def _init(self, context: Any, node: Node) -> DelegateParams:
        params: DelegateParams = node.options
        self.partitions.append(params.nodes_to_replace)
        return params


class ShownAsFloat32:
    """A context whose float16 constants are float32."""

    def __init__(self, context: Any, node: Node) -> None:
        self._context = context
        self.tensors = list(context.tensors)
        for index in node.inputs:
            original = context.tensors[index] if index >= 0 else None
            if original is not None and original.type == TensorType.FLOAT16:
                self.tensors[index] = type(original)(
                    index,
                    TensorType.FLOAT32,
                    original.shape,
                    data=original.data.astype(np.float32),
                    allocation_type=original.allocation_type,
                )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


def _prepare_shown(context: Any, node: Node) -> Eval:
    (index,) = node.user_data.nodes_to_replace
    inner, registration = context.get_node_and_registration(index)
    if registration.name in ("DEQUANTIZE", "DENSIFY"):  # they do read float16
        return registration.prepare(context, inner)
    return registration.prepare(ShownAsFloat32(context, inner), inner)


def float16_series(*ops: str) -> bytes:
    """DEQUANTIZE of a constant, then an operator that reads it and what came before; repeated."""
    nodes: list[Any] = []
    tensors = {}
    for i, op in enumerate(ops):
        options = AddOptions() if op == "ADD" else MulOptions()
        nodes += [("DEQUANTIZE", f"c{i}", f"d{i}"), (op, f"x{i} d{i}", f"x{i + 1}", options)]
        tensors[f"c{i}"] = constant(np.linspace(i, i + 1.5, 4).astype(np.float16))
    return graph_model(nodes, inputs="x0", outputs=f"x{len(ops)}", tensors=tensors)


PUBLISHED = float16_series("ADD", "ADD", "MUL", "ADD")  # the graph of TFLite's own test


def node_inputs(interpreter: Interpreter) -> list[tuple[int, ...]]:
    plan = interpreter.session.subgraphs[0].plan
    return [node.inputs for node, _ in plan.nodes if node.delegate is None]


def run(interpreter: Interpreter) -> Any:
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        rng = np.random.default_rng(5)
        values = rng.standard_normal(detail["shape"]).astype(detail["dtype"])
        interpreter.set_tensor(detail["index"], values)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


@pytest.mark.parametrize(
    ("ops", "n", "partitions", "left"),
    [
        (("ADD",), 1, [(1, 3)], 7),
        (("ADD",), 2, [(1, 3), (7,)], 7),
        (("ADD", "MUL"), 1, [tuple(range(8))], 1),
    ],
)
def test_float16_partitions_are_those_of_the_official_test(
    ops: tuple[str, ...], n: int, partitions: list[tuple[int, ...]], left: int
) -> None:
    delegate = Float16(*ops, n=n)
    with Interpreter(model_content=PUBLISHED) as interpreter:
        subgraph = interpreter.session.subgraphs[0]

        def see(context: DelegateContext) -> None:
            delegate.prepare(context)
            assert delegate.partitions == partitions
            assert len(subgraph.plan.execution_plan) == left
            raise RuntimeError("seen enough: the kernel takes one node only")

        with pytest.raises(DelegateError, match="seen enough"):
            interpreter.modify_graph_with_delegate(Looking(see))


def test_the_predicate_is_asked_as_if_nodes_read_the_constants() -> None:
    delegate = Float16()
    with Interpreter(model_content=PUBLISHED) as interpreter:
        before = node_inputs(interpreter)
        interpreter.modify_graph_with_delegate(delegate)
        assert delegate.read == [TensorType.FLOAT16] * 4
        assert node_inputs(interpreter) == before
    reasons = [delegate.rejections()[i].constraint for i in range(8)]
    assert reasons == ["float16-constant", "op"] * 4


def test_dequantize_of_computed_values_is_asked_about_as_any_node() -> None:
    model = graph_model(
        [("DEQUANTIZE", "h", "x"), ("ADD", "x x", "y", AddOptions())],
        inputs="h",
        outputs="y",
        tensors={"h": tensor((4,), "FLOAT16")},
    )
    delegate = Float16("ADD")
    with Interpreter(model_content=model, delegates=[delegate]):
        assert {i: r.constraint for i, r in delegate.rejections().items()} == {0: "op"}
        assert delegate.read == [TensorType.FLOAT32]


def test_dequantize_of_other_constants_is_asked_about_as_any_node() -> None:
    model = graph_model(
        [("DEQUANTIZE", "q", "d"), ("ADD", "x d", "y", AddOptions())],
        inputs="x",
        outputs="y",
        tensors={"q": constant(np.arange(4, dtype=np.int8), scale=0.5)},
    )
    delegate = Float16("ADD")
    with Interpreter(model_content=model, delegates=[delegate]):
        assert delegate.rejections()[0].constraint == "op"


def test_nodes_that_rules_keep_from_the_delegate_go_on_reading_float32() -> None:
    delegate = Float16("ADD", "MUL")
    expected = run(Interpreter(model_content=PUBLISHED))
    with Interpreter(
        model_content=PUBLISHED,
        experimental_disable_delegate_node_fusion=True,
        placement=PlacementPolicy(rules=[PlacementRule("exclude", nodes=[3])]),
    ) as interpreter:
        before = node_inputs(interpreter)
        interpreter.modify_graph_with_delegate(delegate)
        assert delegate.partitions == [(1,), (5,), (7,)]
        assert node_inputs(interpreter)[3] == before[3]
        assert_array_equal(run(interpreter), expected)


def test_full_delegation_takes_the_dequantize_nodes_whatever_the_limit() -> None:
    delegate = Float16("ADD", "MUL", n=1)
    expected = run(Interpreter(model_content=PUBLISHED))
    with Interpreter(
        model_content=PUBLISHED, experimental_disable_delegate_node_fusion=True
    ) as interpreter:
        interpreter.modify_graph_with_delegate(delegate)
        assert sorted(delegate.partitions) == [(i,) for i in range(8)]
        assert delegate.rejections() == {}
        assert_array_equal(run(interpreter), expected)


def test_a_delegate_that_fails_leaves_the_nodes_reading_float32() -> None:
    class FailsInInit(Float16):
        def _init(self, context: Any, node: Node) -> DelegateParams:
            raise ValueError("no memory on the device")

    with Interpreter(model_content=PUBLISHED) as interpreter:
        before = node_inputs(interpreter)
        with pytest.raises(DelegateError, match="no memory on the device"):
            interpreter.modify_graph_with_delegate(FailsInInit("ADD"))
        assert node_inputs(interpreter) == before
        assert_array_equal(run(interpreter), run(Interpreter(model_content=PUBLISHED)))


def look(model: bytes, see: Callable[[DelegateContext], None]) -> None:
    with Interpreter(model_content=model) as interpreter:
        interpreter.modify_graph_with_delegate(Looking(see))


def test_all_nodes_chosen_leaves_no_reason_of_an_earlier_choice() -> None:
    def see(context: DelegateContext) -> None:
        nodes = [context.get_node_and_registration(i)[0] for i in context.get_execution_plan()]
        inputs = [node.inputs for node in nodes]
        helper = FP16GraphPartitionHelper(context, lambda registration, node, context: True)
        helper.partition()
        assert helper.get_first_n_largest_partitions(0) == []
        assert set(helper.rejections) == set(range(8))
        assert helper.get_nodes_of_first_n_largest_partitions() == list(range(8))
        assert helper.rejections == {}
        for node, read in zip(nodes, inputs, strict=True):
            node.inputs = read  # nothing is replaced here

    look(PUBLISHED, see)


def test_the_constant_may_be_the_first_tensor() -> None:
    asked = []

    def supports(registration: Registration, node: Node, context: DelegateContext) -> bool:
        asked.append((registration.name, node.inputs))
        return True

    def see(context: DelegateContext) -> None:
        FP16GraphPartitionHelper(context, supports).partition()

    nodes: Any = [("DEQUANTIZE", "c", "d"), ("ADD", "d d", "y", AddOptions())]
    half = constant(np.zeros(4, np.float16))
    look(graph_model(nodes, inputs="", outputs="y", tensors={"c": half}), see)
    assert asked == [("ADD", (0, 0))]


def same_after_undo_and_redo(model: bytes, delegate: Float16) -> None:
    """Assert that outputs are those without the delegate; also when undone and applied again."""
    expected = run(Interpreter(model_content=model))
    with Interpreter(
        model_content=model, experimental_disable_delegate_node_fusion=True
    ) as interpreter:
        before = node_inputs(interpreter)
        interpreter.modify_graph_with_delegate(delegate)
        taken = list(delegate.partitions)
        remapped = node_inputs(interpreter)
        assert remapped != before
        for result, value in zip(run(interpreter), expected, strict=True):
            assert_array_equal(result, value)
        detail = interpreter.get_input_details()[0]
        shape = tuple(detail["shape"])
        interpreter.resize_tensor_input(detail["index"], (3, *shape))
        assert node_inputs(interpreter) == before
        interpreter.resize_tensor_input(detail["index"], shape)
        for result, value in zip(run(interpreter), expected, strict=True):
            assert_array_equal(result, value)
        assert delegate.partitions == taken
        assert node_inputs(interpreter) == remapped


def test_float16_outputs_are_the_same_after_undo_and_redo() -> None:
    same_after_undo_and_redo(PUBLISHED, Float16("ADD"))


FLOAT16_MODELS = [
    row["name"] for row in corpus_rows()
    if "FLOAT16" in row.get("dtypes", ()) and "DEQUANTIZE" in row.get("ops", ())
]  # fmt: skip


@pytest.mark.repetition(2)
@needs_corpus
@pytest.mark.parametrize("name", FLOAT16_MODELS or ["-"])
@pytest.mark.parametrize("ops", [("CONV_2D",), ()])
def test_real_float16_models_give_the_same_with_and_without(
    name: str, ops: tuple[str, ...]
) -> None:
    model = corpus_file(name).read_bytes()
    same_after_undo_and_redo(model, Float16(*ops, takes_all=not ops))
