"""The nodes a delegate gets: those it supports, in the largest partitions, as its options allow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from corpus import corpus_file, corpus_rows, needs_corpus
from graph_model import graph_model
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from one_op import constant, tensor

from delegraph import (
    Delegate,
    DelegateContext,
    DelegateOptions,
    DelegateParams,
    FP16GraphPartitionHelper,
    GraphPartitionHelper,
    Interpreter,
    Node,
    Registration,
    Rejection,
    SimpleDelegateInterface,
    SimpleDelegateKernelInterface,
)
from delegraph.delegation.delegate import NO_REASON
from delegraph.delegation.rules import PlacementRule
from delegraph.errors import DelegateError
from delegraph.kernels.registration import Eval
from delegraph.schema.enums import TensorType
from delegraph.schema.options import AddOptions, MulOptions

Helper = GraphPartitionHelper | FP16GraphPartitionHelper


class Looking(Delegate):
    """Lets a function look at the subgraph while a delegate is being applied; claims nothing."""

    def __init__(self, look: Callable[[DelegateContext], None]) -> None:
        self._look = look

    def name(self) -> str:
        return "looking"

    def prepare(self, context: DelegateContext) -> None:
        self._look(context)


def look(model: bytes, see: Callable[[DelegateContext], None]) -> None:
    with Interpreter(model_content=model) as interpreter:
        interpreter.modify_graph_with_delegate(Looking(see))


def by_name(*ops: str) -> Callable[[Registration, Node, DelegateContext], bool | Rejection]:
    def is_supported(
        registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        return registration.name in ops or Rejection("op", actual=registration.name)

    return is_supported


def series(text: str) -> bytes:
    """A chain of nodes: s is SIN, a is ADD, m is MUL."""
    ops = {"s": ("SIN",), "a": ("ADD", AddOptions()), "m": ("MUL", MulOptions())}
    nodes: list[Any] = []
    for i, letter in enumerate(text):
        op, *options = ops[letter]
        nodes.append((op, f"t{i}" if letter == "s" else f"t{i} t{i}", f"t{i + 1}", *options))
    return graph_model(nodes, inputs="t0", outputs=f"t{len(text)}")


def helped(model: bytes, *ops: str, nodes: tuple[int | None, int] = (None, 0), **span: Any) -> Any:
    """Return the helper, and the nodes it gives for (n, min_nodes_per_partition)."""
    found: list[Any] = []

    def see(context: DelegateContext) -> None:
        helper = GraphPartitionHelper(context, by_name(*ops))
        helper.partition(**span)
        found.extend((helper, helper.get_nodes_of_first_n_largest_partitions(*nodes)))

    look(model, see)
    return found


def constraints(helper: Helper) -> dict[int, str]:
    return {index: rejection.constraint for index, rejection in helper.rejections.items()}


# -- asking --------------------------------------------------------------------------------------


def test_nodes_supported_nodes_and_partitions_are_counted() -> None:
    helper, nodes = helped(series("ssasmaass"), "SIN")
    assert (helper.num_total_nodes, helper.num_supported_nodes, helper.num_partitions) == (9, 5, 3)
    assert nodes == [0, 1, 7, 8, 3]
    assert constraints(helper) == dict.fromkeys((2, 4, 5, 6), "op")


def test_a_list_of_nodes_is_taken_without_asking() -> None:
    def see(context: DelegateContext) -> None:
        helper = GraphPartitionHelper(context, [3, 1, 0])
        helper.partition()
        assert (helper.num_total_nodes, helper.num_supported_nodes) == (3, 0)
        assert helper.num_partitions == 2
        assert helper.get_nodes_of_first_n_largest_partitions() == [0, 1, 3]

    look(series("sasa"), see)


@pytest.mark.parametrize(
    ("span", "taken", "left"),
    [
        ({"start_node_index": 2}, [2, 4], {0: "node-range", 1: "op", 3: "op"}),
        ({"end_node_index": 2}, [0, 2], {1: "op", 3: "op", 4: "node-range"}),
        ({"start_node_index": 1, "end_node_index": 1}, [], {
            0: "node-range", 1: "op", 2: "node-range", 3: "node-range", 4: "node-range",
        }),
        ({"end_node_index": 99}, [0, 2, 4], {1: "op", 3: "op"}),
    ],
)  # fmt: skip
def test_a_range_of_node_indices_leaves_the_others(
    span: dict[str, int], taken: list[int], left: dict[int, str]
) -> None:
    helper, nodes = helped(series("sasas"), "SIN", **span)
    assert nodes == taken
    assert constraints(helper) == left


def test_bare_false_is_no_reason_given() -> None:
    def see(context: DelegateContext) -> None:
        helper = GraphPartitionHelper(context, lambda registration, node, context: False)
        helper.partition()
        assert helper.rejections == {0: NO_REASON, 1: NO_REASON}
        assert helper.num_partitions == 0
        assert helper.get_nodes_of_first_n_largest_partitions() == []

    look(series("ss"), see)


def test_a_numpy_bool_is_an_answer() -> None:
    def see(context: DelegateContext) -> None:
        helper = GraphPartitionHelper(context, lambda r, node, c: np.bool_(node.index == 1))  # type: ignore[arg-type,return-value]  # what authors do
        helper.partition()
        assert helper.get_nodes_of_first_n_largest_partitions() == [1]
        assert helper.rejections == {0: NO_REASON}

    look(series("ss"), see)


@pytest.mark.parametrize("answer", [None, "yes", 1, (False, "too large")])
def test_an_answer_that_is_none_is_an_error_that_names_the_node(answer: Any) -> None:
    def see(context: DelegateContext) -> None:
        helper = GraphPartitionHelper(
            context, lambda r, node, c: answer if node.index else True, delegate="mine"
        )
        with pytest.raises(DelegateError, match=r"node 1 \(MUL\).*not a bool or a Rejection") as e:
            helper.partition()
        assert (e.value.delegate, e.value.phase, e.value.node_index) == ("mine", "claim", 1)
        assert repr(answer) in str(e.value)

    look(series("sm"), see)


def test_a_predicate_that_raises_is_an_error_that_names_node_and_cause() -> None:
    def is_supported(registration: Registration, node: Node, context: DelegateContext) -> bool:
        return bool({}["no such key"])

    def see(context: DelegateContext) -> None:
        helper = GraphPartitionHelper(context, is_supported, delegate="mine")
        message = r"node 0 \(SIN\): KeyError: 'no such key'"
        with pytest.raises(DelegateError, match=message) as e:
            helper.partition()
        assert (e.value.delegate, e.value.phase, e.value.node_index) == ("mine", "claim", 0)

    look(series("s"), see)


# -- choosing ------------------------------------------------------------------------------------

SIZES_3_1_2_2 = "sss a s a ss m ss".replace(" ", "")


@pytest.mark.parametrize(
    ("n", "minimum", "taken"),
    [
        (None, 0, [0, 1, 2, 6, 7, 9, 10, 4]),
        (99, 1, [0, 1, 2, 6, 7, 9, 10, 4]),
        (2, 0, [0, 1, 2, 6, 7]),
        (None, 2, [0, 1, 2, 6, 7, 9, 10]),
        (3, 3, [0, 1, 2]),
        (None, 4, []),
        (0, 0, []),
        (-1, 0, []),
        (1, -5, [0, 1, 2]),
    ],
)
def test_largest_partitions_come_first_and_ties_in_plan_order(
    n: int | None, minimum: int, taken: list[int]
) -> None:
    helper, nodes = helped(series(SIZES_3_1_2_2), "SIN", nodes=(n, minimum))
    assert nodes == taken
    assert set(helper.rejections) == set(range(len(SIZES_3_1_2_2))) - set(taken)


def test_limits_tell_which_of_them_left_a_node() -> None:
    helper, _ = helped(series(SIZES_3_1_2_2), "SIN", nodes=(3, 3))
    assert helper.rejections[6] == Rejection("min-nodes-per-partition", actual=2, expected=3)
    assert helper.rejections[4] == Rejection("max-delegated-partitions", actual=4, expected=3)
    assert helper.rejections[3].constraint == "op"


@pytest.mark.parametrize(
    ("options", "taken"),
    [
        (DelegateOptions(), [0, 1, 2, 6, 7, 9, 10, 4]),
        (DelegateOptions(max_delegated_partitions=-1, min_nodes_per_partition=-1),
         [0, 1, 2, 6, 7, 9, 10, 4]),
        (DelegateOptions(max_delegated_partitions=2), [0, 1, 2, 6, 7]),
        (DelegateOptions(min_nodes_per_partition=3), [0, 1, 2]),
    ],
)  # fmt: skip
def test_limits_of_zero_or_less_in_options_are_none(
    options: DelegateOptions, taken: list[int]
) -> None:
    helper, _ = helped(series(SIZES_3_1_2_2), "SIN")
    assert sorted(helper.get_nodes_within(options)) == sorted(taken)


def largest(
    partitions: Sequence[tuple[int, ...]], n: int, minimum: int
) -> tuple[list[int], list[tuple[int, ...]]]:
    """Slow definition: take the first of the largest again and again; return it and the rest."""
    left, taken = list(partitions), list[int]()
    for _ in range(n):
        size = max(map(len, left), default=0)
        if not left or size < minimum:
            break
        first = next(partition for partition in left if len(partition) == size)
        left.remove(first)
        taken += first
    return taken, left


@settings(deadline=None, max_examples=60)
@given(st.text("sam", min_size=1, max_size=30), st.integers(-1, 8), st.integers(-1, 6))
def test_choice_is_that_of_the_definition(text: str, n: int, minimum: int) -> None:
    runs = [list[int]()]
    for i, letter in enumerate(text):
        if letter == "s":
            runs[-1].append(i)
        elif runs[-1]:
            runs.append([])
    partitions = [tuple(run) for run in runs if run]
    helper, nodes = helped(series(text), "SIN", nodes=(n, minimum))
    taken, left = largest(partitions, n, minimum)  # a series: partitions are runs of neighbours
    assert nodes == taken
    assert helper.num_partitions == len(partitions)
    limited = {i for i, reason in helper.rejections.items() if reason.constraint != "op"}
    assert limited == {i for partition in left for i in partition}


# -- a simple delegate's options -----------------------------------------------------------------


class Odd(SimpleDelegateInterface):
    """Takes SIN; one of its methods returns what a test says."""

    def __init__(self, **returned: Any) -> None:
        self._returned = returned

    def name(self) -> str:
        return "odd"

    def delegate_options(self) -> DelegateOptions:
        options: DelegateOptions = self._returned.get("options", DelegateOptions())
        return options

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool | Rejection:
        answer: bool = self._returned.get("answer", registration.name == "SIN")
        return answer

    def create_delegate_kernel_interface(self) -> SimpleDelegateKernelInterface:
        kernel: SimpleDelegateKernelInterface = self._returned["kernel"]
        return kernel


@pytest.mark.parametrize(
    ("returned", "phase", "node", "message"),
    [
        ({"options": {"max_delegated_partitions": 1}}, "initialize", None,
         r"delegate_options\(\) returned {'max_delegated_partitions': 1}, not DelegateOptions"),
        ({"answer": None}, "claim", 0, r"node 0 \(SIN\): its answer is None"),
        ({"kernel": "none"}, "init", 2, r"returned 'none', not a SimpleDelegateKernelInterface"),
        ({}, "init", 2, r"create_delegate_kernel_interface\(\): KeyError: 'kernel'"),
    ],
)  # fmt: skip
def test_what_a_simple_delegate_returns_by_mistake_is_shown(
    returned: dict[str, Any], phase: str, node: int | None, message: str
) -> None:
    with pytest.raises(DelegateError, match=message) as e:
        Interpreter(model_content=series("sm"), delegates=[Odd(**returned)])
    assert (e.value.delegate, e.value.phase, e.value.node_index) == ("odd", phase, node)


# -- float16 constants ---------------------------------------------------------------------------


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
            Registration(self.name(), _prepare_shown, init=self._init), nodes, self
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
        rules=[PlacementRule("exclude", nodes=[3])],
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


@needs_corpus
@pytest.mark.parametrize("name", FLOAT16_MODELS or ["-"])
@pytest.mark.parametrize("ops", [("CONV_2D",), ()])
def test_real_float16_models_give_the_same_with_and_without(
    name: str, ops: tuple[str, ...]
) -> None:
    model = corpus_file(name).read_bytes()
    same_after_undo_and_redo(model, Float16(*ops, takes_all=not ops))
