"""The nodes behind a delegate node, computed beside it without a trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegraph import (
    DelegateContext,
    DelegateFlags,
    Interpreter,
    OpResolverType,
    Registration,
    SimpleDelegateKernelInterface,
)
from delegraph.errors import NodeError, OperatorError, UnresolvedOpError
from delegraph.operators.registration import Node
from delegraph.runtime.delegates.original_nodes import OriginalNodes
from delegraph.schema.enums import TensorType
from delegraph.schema.options import AddOptions, DequantizeOptions, ShapeOptions
from delegraph.testing import constant, graph_model, tensor
from support.by_name import sines
from support.faulty_delegate import Faulty
from support.policy_models import (
    counting,
    doubling,
    floats,
    positive_positions,
    remembering,
    stepped,
)

X = np.array([2.0, 0.5, -1.0, 0.0], np.float32)


def originals_of(interpreter: Interpreter, **options: bool) -> OriginalNodes:
    """Return the original nodes of the first delegate node of the plan."""
    subgraph = interpreter.session.subgraphs[0]
    node = next(node for node, _ in subgraph.plan.steps() if node.delegate is not None)
    return OriginalNodes(subgraph, node, **options)


def states(interpreter: Interpreter) -> list[tuple[Any, ...]]:
    return [
        (t.shape, id(t.data), t.allocation_type, t.delegate, t.buffer_handle, t.data_is_stale)
        for subgraph in interpreter.session.subgraphs
        for t in subgraph.tensors
    ]


def fed(model: bytes, delegate: Faulty, x: np.ndarray[Any, Any] = X) -> Interpreter:
    interpreter = Interpreter(model_content=model, delegates=[delegate])
    stepped(interpreter, [x])
    return interpreter


@pytest.mark.parametrize("ops", [(), ("SIN",)])
def test_results_are_those_of_the_undelegated_run(ops: tuple[str, ...]) -> None:
    interpreter = fed(sines(), Faulty(*ops))
    originals = originals_of(interpreter)
    originals.work_out_shapes()
    originals.run()
    undelegated = Interpreter(
        model_content=sines(),
        experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        experimental_preserve_all_tensors=True,
    )
    stepped(undelegated, [X])
    for index in originals.outputs:
        np.testing.assert_array_equal(
            originals.result(index).data, undelegated.get_tensor(index), strict=True
        )


@pytest.mark.parametrize(
    ("model", "x"),
    [
        (sines(), X),
        (positive_positions(), X),
        (doubling(), X[:1]),
        (remembering(), X[:1].reshape(1, 1)),
    ],
    ids=["chain", "dynamic", "while", "variable"],
)
def test_what_the_delegate_sees_does_not_change(model: bytes, x: Any) -> None:
    interpreter = fed(model, Faulty(dynamic=True), x)
    before = states(interpreter)
    originals = originals_of(interpreter)
    originals.work_out_shapes()
    originals.run()
    originals.run()
    assert states(interpreter)[: len(before)] == before


def test_inner_tensors_get_memory_only_for_the_original_nodes() -> None:
    interpreter = fed(sines(), Faulty())
    originals = originals_of(interpreter)
    inner = interpreter.session.subgraphs[0].tensors[1]
    assert inner.data is None
    originals.run()
    with originals.as_computed():
        assert inner.data.shape == (4,)
    assert inner.data is None


def test_delivered_results_are_the_outputs() -> None:
    interpreter = fed(sines(), Faulty())
    originals = originals_of(interpreter)
    output = interpreter.get_output_details()[0]["index"]
    expected = interpreter.get_tensor(output)
    tensor = interpreter.session.subgraphs[0].tensors[output]
    tensor.data[...], tensor.data_is_stale = 0, True
    originals.run()
    originals.deliver()
    assert not tensor.data_is_stale
    np.testing.assert_array_equal(interpreter.get_tensor(output), expected)


def test_they_are_prepared_again_when_shapes_change() -> None:
    interpreter = Interpreter(model_content=sines(), delegates=[Faulty(dynamic=True)])
    stepped(interpreter, [X])
    originals = originals_of(interpreter)
    originals.run()
    (y,) = stepped(interpreter, [np.tile(X, (3, 1))])
    originals.run()
    np.testing.assert_array_equal(originals.result(originals.outputs[0]).data, y, strict=True)


@pytest.mark.parametrize("signs", [(1, 1, 1, 1), (-1, 1, -1, 1), (-1, -1, -1, -1)])
def test_shapes_known_only_while_running_are_found_at_each_run(signs: tuple[int, ...]) -> None:
    interpreter = fed(positive_positions(), Faulty(dynamic=True))
    originals = originals_of(interpreter)
    originals.run()
    x = np.array(signs, np.float32)
    (y,) = stepped(interpreter, [x])
    originals.run()
    result = originals.result(originals.outputs[0])
    assert originals.is_open(originals.outputs[0])
    assert not any(originals.is_open(index) for index in originals.inputs)
    np.testing.assert_array_equal(result.data, y, strict=True)
    np.testing.assert_array_equal(y[:, 0], np.flatnonzero(x > 0) ** 2)


def test_nodes_that_call_subgraphs_work() -> None:
    interpreter = fed(doubling(), Faulty("WHILE", "ADD", dynamic=True), X[:1])
    originals = originals_of(interpreter)
    originals.run()
    np.testing.assert_array_equal(originals.result(originals.outputs[0]).data, [17])


def test_variables_are_shared() -> None:
    interpreter = fed(remembering(), Faulty(), np.ones((1, 1), np.float32))
    originals = originals_of(interpreter)
    originals.run()
    assert originals.result(originals.outputs[0]).data == 1.5
    assert stepped(interpreter, [np.ones((1, 1), np.float32)])[0] == 1.75


def test_resources_are_shared() -> None:
    interpreter = Interpreter(model_content=counting(), delegates=[Faulty(dynamic=True)])
    interpreter.session.resources["", "v"] = np.ones(4, np.float32)
    stepped(interpreter, [X])
    originals = originals_of(interpreter)
    originals.run()
    np.testing.assert_array_equal(interpreter.session.resources["", "v"], 1 + 2 * X)


def test_a_node_of_an_earlier_delegate_is_run_by_that_delegate() -> None:
    earlier = Faulty("SIN", name="earlier")
    interpreter = Interpreter(
        model_content=sines(), delegates=[earlier, Faulty("ADD", "MUL", "earlier")]
    )
    (y,) = stepped(interpreter, [X])
    originals = originals_of(interpreter)
    names = [registration.name for _, registration in originals.nodes]
    assert names.count("earlier") == 2
    runs = earlier.runs
    originals.run()
    assert earlier.runs == runs + 2
    np.testing.assert_array_equal(originals.result(originals.outputs[0]).data, y)


def test_with_only_kernels_a_node_of_an_earlier_delegate_is_its_original_nodes() -> None:
    earlier = Faulty("SIN", name="earlier")
    interpreter = Interpreter(
        model_content=sines(), delegates=[earlier, Faulty("ADD", "MUL", "earlier")]
    )
    (y,) = stepped(interpreter, [X])
    originals = originals_of(interpreter, only_kernels=True)
    assert sorted(node.index for node, _ in originals.nodes) == [0, 1, 2, 3, 4]
    runs = earlier.runs
    originals.run()
    assert earlier.runs == runs
    np.testing.assert_array_equal(originals.result(originals.outputs[0]).data, y)


class TakesHalves(Faulty):
    """Reads a float16 constant where the model reads what DEQUANTIZE makes of it."""

    def is_node_supported_by_delegate(
        self, registration: Registration, node: Node, context: DelegateContext
    ) -> bool:
        if registration.name == "ADD":
            half = next(t.index for t in context.tensors if t.name == "half")
            node.inputs = (node.inputs[0], half)
        return registration.name == "ADD"


def test_inputs_are_those_of_the_model_when_a_delegate_looked_through_dequantize() -> None:
    half = constant(np.array([0.5, 1, 2, 3], np.float16))
    model = graph_model(
        [
            ("DEQUANTIZE", "half", "w", DequantizeOptions()),
            ("SIN", "x", "a"),
            ("ADD", "a w", "y", AddOptions()),
        ],
        inputs="x",
        outputs="y",
        tensors={"half": half},
    )

    class Silent(TakesHalves):
        def create_delegate_kernel_interface(self) -> Any:
            return _NoKernel()

    interpreter = Interpreter(model_content=model, delegates=[Silent()])
    stepped(interpreter, [X])
    interpreter.session.subgraphs[0].tensors[2].data = None  # as if its memory were another's now
    originals = originals_of(interpreter)
    assert [registration.name for _, registration in originals.nodes] == ["DEQUANTIZE", "ADD"]
    originals.run()
    (expected,) = stepped(Interpreter(model_content=model), [X])
    np.testing.assert_array_equal(originals.result(originals.outputs[0]).data, expected)


class _NoKernel(SimpleDelegateKernelInterface):
    def init(self, context: Any, params: Any) -> None:
        pass

    prepare = eval = init


def test_a_custom_operator_without_kernel_is_named() -> None:
    model = graph_model([("Odd", "x", "y")], inputs="x", outputs="y")

    class Odd(Faulty):
        def create_delegate_kernel_interface(self) -> Any:
            return _NoKernel()

    interpreter = Interpreter(model_content=model, delegates=[Odd("Odd")])
    with pytest.raises(UnresolvedOpError, match=r"Node number 0 \(Odd\) has no kernel"):
        originals_of(interpreter).work_out_shapes()


def test_a_kernel_that_fails_is_named() -> None:
    model = graph_model(
        [("ADD", "x b", "y", AddOptions())], inputs="x b", outputs="y", tensors={"b": tensor((1,))}
    )
    interpreter = Interpreter(model_content=model, delegates=[Faulty(dynamic=True)])
    interpreter.allocate_tensors()
    originals = originals_of(interpreter)
    interpreter.session.subgraphs[0].tensors[1].shape = (3,)
    with pytest.raises(NodeError, match=r"Node number 0 \(ADD\) failed to prepare"):
        originals.work_out_shapes()
    interpreter.session.subgraphs[0].tensors[1].shape = (1,)
    originals.work_out_shapes()
    interpreter.session.subgraphs[0].tensors[1].data = None
    with pytest.raises(NodeError, match=r"Node number 0 \(ADD\) failed to invoke"):
        originals.run()


def test_results_that_do_not_fit_are_not_delivered() -> None:
    interpreter = fed(sines(), Faulty())
    originals = originals_of(interpreter)
    originals.run()
    output = interpreter.session.subgraphs[0].tensors[originals.outputs[0]]
    output.data = output.data[:2]
    with pytest.raises(OperatorError, match=r"was given that shape by its delegate; it is \[4\]"):
        originals.deliver()


def test_propagated_shapes_reach_inner_tensors_and_outputs() -> None:
    seen = []

    class Looking(Faulty):
        def create_delegate_kernel_interface(self) -> Any:
            return _LookingKernel(seen)

        def flags(self) -> DelegateFlags:
            return super().flags() | DelegateFlags.REQUIRE_PROPAGATED_SHAPES

    interpreter = Interpreter(model_content=sines(), delegates=[Looking(dynamic=True)])
    interpreter.resize_tensor_input(0, (2, 3))
    interpreter.allocate_tensors()
    assert seen == [((2, 3), True)] * 5


class _LookingKernel(_NoKernel):
    """Notes shapes of what its nodes write, and whether it has no memory yet."""

    def __init__(self, seen: list[Any]) -> None:
        self._seen = seen

    def prepare(self, context: Any, node: Any) -> None:
        nodes = map(context.get_node_and_registration, node.options.nodes_to_replace)
        written = [context.tensors[i] for inner, _ in nodes for i in inner.outputs]
        self._seen += [(tensor.shape, tensor.data is None) for tensor in written]


@pytest.mark.parametrize("ops", [(), ("ADD", "MUL"), ("SIN", "MUL")])
def test_within_an_invoke_they_give_the_same_as_without_delegate(ops: tuple[str, ...]) -> None:
    steps = floats(5)
    delegated = Interpreter(model_content=sines(), delegates=[Faulty(*ops)])
    plain = Interpreter(model_content=sines())
    np.testing.assert_array_equal(stepped(delegated, steps), stepped(plain, steps))


def test_they_are_prepared_again_when_values_change_that_follow_from_shapes() -> None:
    nodes: list[Any] = [
        ("SHAPE", "x", "dims", ShapeOptions(out_type=TensorType.INT32)),
        ("FILL", "dims value", "y"),
    ]
    tensors = {
        "x": tensor((2, 3)),
        "dims": tensor((2,), "INT32"),
        "value": constant(np.float32(0.5)),
        "y": tensor((2, 3)),
    }
    model = graph_model(nodes, inputs="x", outputs="y", tensors=tensors)
    interpreter = Interpreter(model_content=model, delegates=[Faulty("FILL", dynamic=True)])
    originals = originals_of(interpreter)
    for shape in ((2, 3), (3, 2), (4, 5)):
        interpreter.resize_tensor_input(0, shape)
        interpreter.allocate_tensors()
        originals.run()
        assert originals.result(originals.outputs[0]).shape == shape
