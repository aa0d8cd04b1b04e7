"""Delegraph's delegates inside the official interpreter, as its own users would apply them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph import (
    Delegate,
    DelegateContext,
    DelegateFlags,
    DelegateOptions,
    Interpreter,
    Node,
    Registration,
)
from delegraph.delegation.num_threads import usable_processors
from delegraph.errors import ArgumentError, DelegateError, OperatorError
from delegraph.native import LiteRtInterpreter, litert_delegate
from delegraph.schema.options import AddOptions, Conv2DOptions, GatherOptions, MulOptions
from delegraph.testing import constant, graph_model, tensor
from support.by_name import ByName, ByNameKernel, X, sines
from support.looking import Looking
from support.policy_models import doubling, positive_positions, remembering
from support.running import result_of

litert = pytest.importorskip("ai_edge_litert.interpreter")

DYNAMIC = DelegateFlags.ALLOW_DYNAMIC_TENSORS
ALONE = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
AUTO = litert.OpResolverType.AUTO


def official(content: bytes, *delegates: Any, resolver: Any = ALONE) -> Any:
    """Return an official interpreter with delegates of ours."""
    own = [litert_delegate(delegate, model=content) for delegate in delegates]
    return litert.Interpreter(
        model_content=content, experimental_delegates=own, experimental_op_resolver_type=resolver
    )


def run(interpreter: Any, x: NDArray[Any]) -> NDArray[Any]:
    first = interpreter.get_input_details()[0]
    if tuple(first["shape"]) != x.shape:
        interpreter.resize_tensor_input(first["index"], x.shape)
    interpreter.allocate_tensors()
    return result_of(interpreter, x)


def seen(content: bytes, look: Any, *before: Any) -> None:
    """Let *look* see the subgraph behind the delegates *before*; what it raises is raised."""
    LiteRtInterpreter(model_content=content, delegates=[*before, Looking(look)])


# -- what is claimed -------------------------------------------------------------------------------


def test_the_same_delegate_computes_the_same_in_both_hosts() -> None:
    own = Interpreter(model_content=sines(), delegates=[ByName("SIN", "ADD")])
    assert np.array_equal(run(official(sines(), ByName("SIN", "ADD")), X), run(own, X))


def test_each_partition_has_a_kernel_of_its_own() -> None:
    delegate = ByName("SIN")
    run(official(sines(), delegate), X)
    assert [params.nodes_to_replace for params in delegate.params] == [(0,), (3,)]
    assert delegate.calls.count("init") == 2


def test_limits_on_partitions_hold() -> None:
    delegate = ByName("SIN", "ADD", options=DelegateOptions(max_delegated_partitions=1))
    run(official(sines(), delegate), X)
    assert len(delegate.params) == 1


@pytest.mark.parametrize("flags", [DelegateFlags.NONE, DYNAMIC])
@pytest.mark.parametrize("resolver", [ALONE, AUTO])
def test_every_shape_is_right_after_resizing(flags: DelegateFlags, resolver: Any) -> None:
    delegate = ByName("SIN", "ADD", flags=flags)
    interpreter = official(sines(), delegate, resolver=resolver)
    for count in (4, 9, 1, 6):
        x = np.linspace(-2, 2, count, dtype=np.float32)
        wanted = np.sin(x) + x + np.sin(2 * x)
        np.testing.assert_allclose(run(interpreter, x), wanted, rtol=1e-6, atol=1e-6)


def test_a_static_delegate_is_applied_again_after_a_resize_and_a_dynamic_one_is_not() -> None:
    counts = {}
    for flags in (DelegateFlags.NONE, DYNAMIC):
        delegate = ByName("SIN", flags=flags)
        interpreter = official(sines(), delegate)
        run(interpreter, X)
        run(interpreter, np.ones(9, np.float32))
        counts[flags] = delegate.calls.count("init")
    assert counts == {DelegateFlags.NONE: 4, DYNAMIC: 2}


def test_a_later_delegate_sees_an_earlier_ones_nodes() -> None:
    first = ByName("SIN", name="first", flags=DYNAMIC)
    found = []

    def look(context: DelegateContext) -> None:
        for index in context.get_execution_plan():
            node, kind = context.get_node_and_registration(index)
            found.append((kind.name, node.delegate is not None))

    seen(sines(), look, first)
    assert found == [
        ("first", True), ("ADD", False), ("MUL", False), ("first", True), ("ADD", False)
    ]  # fmt: skip


def test_several_delegates_share_a_graph_and_the_runtime_takes_the_rest() -> None:
    delegates = [ByName("SIN", name="sines"), ByName("MUL", name="products")]
    interpreter = official(sines(), *delegates, resolver=AUTO)
    own = Interpreter(model_content=sines())
    np.testing.assert_allclose(run(interpreter, X), run(own, X), rtol=1e-6)
    ops = [details["op_name"] for details in interpreter._get_ops_details()]
    assert len(ops) > 5 + 3  # the model's, three of ours, and XNNPACK's


def test_a_delegate_cannot_take_a_node_twice_nor_one_that_is_not_there() -> None:
    def look(context: DelegateContext) -> None:
        delegate = Looking(look)
        registration = Registration("x", lambda context, node: lambda: None)
        for nodes in ([99], [-1]):
            with pytest.raises(ArgumentError, match="not in the execution plan"):
                context.replace_node_subsets_with_delegate_kernels(registration, nodes, delegate)
            with pytest.raises(ArgumentError, match="no node"):
                context.get_node_and_registration(nodes[0])
        context.replace_node_subsets_with_delegate_kernels(registration, [], delegate)
        assert context.preview_delegate_partitioning([]) == []

    seen(sines(), look)


# -- what is seen ----------------------------------------------------------------------------------


def conv() -> bytes:
    """A convolution with a constant weight, quantized by channel."""
    rng = np.random.default_rng(3)
    weight = rng.integers(-9, 9, (2, 1, 1, 3)).astype(np.int8)
    scales = [0.5, 0.25]
    tensors = {
        "x": tensor((1, 4, 4, 3), "INT8", scale=0.1, zero_point=3, shape_signature=(1, -1, -1, 3)),
        "w": constant(weight, scale=scales, zero_point=[0, 0], axis=0),
        "b": constant(np.array([1, -2], np.int32), scale=[0.05, 0.025], zero_point=[0, 0]),
        "y": tensor((1, 2, 4, 2), "INT8", scale=0.2, zero_point=-1),
    }
    options = Conv2DOptions(stride_h=2, stride_w=1)
    return graph_model(
        [("CONV_2D", "x w b", "y", options)], inputs="x", outputs="y", tensors=tensors
    )


def test_tensors_are_what_the_file_says_and_options_are_typed() -> None:
    def look(context: DelegateContext) -> None:
        node, kind = context.get_node_and_registration(0)
        assert kind.name == "CONV_2D"
        assert isinstance(node.options, Conv2DOptions)
        assert (node.options.stride_h, node.options.stride_w) == (2, 1)
        x, w = context.tensors[node.inputs[0]], context.tensors[node.inputs[1]]
        assert (x.name, x.type.name, x.shape) == ("x", "INT8", (1, 4, 4, 3))
        assert x.shape_signature == (1, -1, -1, 3)
        assert (x.zero_point, x.data) == (3, None)
        assert w.quantization is not None
        assert w.quantization.scales.tolist() == [0.5, 0.25]
        assert w.is_constant
        assert w.data.shape == (2, 1, 1, 3)
        assert context.inputs == (node.inputs[0],)
        assert context.outputs == node.outputs
        assert context.subgraph_index == 0

    seen(conv(), look)


def test_constants_cannot_be_written() -> None:
    def look(context: DelegateContext) -> None:
        node, _ = context.get_node_and_registration(0)
        with pytest.raises(ValueError, match="read-only"):
            context.tensors[node.inputs[1]].data[...] = 0
        with pytest.raises(OperatorError, match="constant"):
            context.resize_tensor(context.tensors[node.inputs[1]], (1,))

    seen(conv(), look)


def test_no_tensor_gets_a_dimension_that_no_int32_holds() -> None:
    def look(context: DelegateContext) -> None:
        output = context.tensors[context.outputs[0]]
        for shape in [(0, 2**32 + 1), (-1,)]:
            with pytest.raises(OperatorError, match="from 0 to 2147483647"):
                context.resize_tensor(output, shape)

    seen(conv(), look)


def test_threads_and_metadata_are_the_interpreters() -> None:
    content = graph_model([("SIN", "x", "y")], inputs="x", outputs="y", metadata={"note": b"hi"})
    found = []

    def look(context: DelegateContext) -> None:
        found.append(context.recommended_num_threads)
        found.append(context.get_model_metadata("note").tobytes())
        with pytest.raises(ArgumentError, match="no metadata 'other'; the model has: note"):
            context.get_model_metadata("other")

    LiteRtInterpreter(model_content=content, num_threads=3, delegates=[Looking(look)])
    assert found == [3, b"hi"]
    found.clear()
    LiteRtInterpreter(model_content=content, num_threads=10_000, delegates=[Looking(look)])
    assert found[0] == 8 * usable_processors()


def test_a_partition_can_be_had_as_a_model() -> None:
    delegate = ByName("SIN", "ADD")
    run(official(sines(), delegate), X)
    content = delegate.params[0].as_model()
    assert run(Interpreter(model_content=content), X) == pytest.approx(np.sin(X) + X)


def test_what_only_the_runtime_may_do_is_refused_with_a_reason() -> None:
    def look(context: DelegateContext) -> None:
        with pytest.raises(DelegateError, match=r"only C\+\+ delegates"):
            context.mark_subgraph_as_delegation_skippable(1)
        with pytest.raises(OperatorError, match="cannot call another subgraph"):
            context.subgraph(1)
        with pytest.raises(ArgumentError, match="no subgraph 7; the model has 3"):
            context.acquire_subgraph_context(7)

    seen(doubling(), look)


def test_other_subgraphs_can_be_looked_at() -> None:
    found = []

    def look(context: DelegateContext) -> None:
        if context.subgraph_index == 0:
            other = context.acquire_subgraph_context(2)
            _, kind = other.get_node_and_registration(0)
            found.append((other.subgraph_index, kind.name))
            registration = Registration("adds", lambda context, node: lambda: None)
            context.replace_node_subsets_with_delegate_kernels(registration, [1], delegate)
            with pytest.raises(DelegateError, match="only while a delegate is being applied"):
                kept[0].preview_delegate_partitioning([0])
        kept.append(context)

    kept: list[DelegateContext] = []
    delegate = Looking(look)
    LiteRtInterpreter(model_content=doubling(), delegates=[Looking(kept.append), delegate])
    assert found == [(2, "ADD")]


# -- another model ---------------------------------------------------------------------------------


def two(first: str, second: str, options: Sequence[Any]) -> bytes:
    nodes = [(first, "x x", "a", options[0]), (second, "a x", "y", options[1])]
    return graph_model(nodes, inputs="x", outputs="y")  # type: ignore[arg-type]  # a tuple of four


def test_a_model_that_the_interpreter_does_not_run_is_refused() -> None:
    runs = two("ADD", "MUL", [AddOptions(), MulOptions()])
    other = two("MUL", "ADD", [MulOptions(), AddOptions()])
    delegate = litert_delegate(ByName("ADD"), model=other)
    with pytest.raises(RuntimeError, match="Is it the model that the interpreter runs"):
        litert.Interpreter(model_content=runs, experimental_delegates=[delegate])
    assert isinstance(delegate.last_exception, DelegateError)
    assert "node 0 is ADD of [0, 0] to [1]" in str(delegate.last_exception)


def test_a_model_with_other_types_is_refused() -> None:
    floats = graph_model([("ADD", "x x", "y", AddOptions())], inputs="x", outputs="y")
    ints = {"x": tensor((4,), "INT32"), "y": tensor((4,), "INT32")}
    other = graph_model([("ADD", "x x", "y", AddOptions())], inputs="x", outputs="y", tensors=ints)
    delegate = litert_delegate(ByName("ADD"), model=other)
    with pytest.raises(RuntimeError, match="have other types than the model's"):
        litert.Interpreter(model_content=floats, experimental_delegates=[delegate])


def test_options_are_for_names() -> None:
    with pytest.raises(ArgumentError, match="options need a delegate given by its name"):
        litert_delegate(ByName("SIN"), {"x": 1}, model=sines())


# -- shapes known while invoking, loops, variables -------------------------------------------------


def test_shapes_known_only_while_invoking_reach_a_dynamic_delegate() -> None:
    interpreter = official(positive_positions(), ByName("MUL", flags=DYNAMIC, kernel=OpenKernel))
    for x in ([1, 0, 2, 3], [0, 0, 0, 5], [1, 1, 1, 1]):
        values = np.array(x, np.float32)
        found = run(interpreter, values)
        assert found.reshape(-1).tolist() == [float(i * i) for i in np.flatnonzero(values)]


class OpenKernel(ByNameKernel):
    """Leaves the shapes of its outputs open."""

    def prepare(self, context: DelegateContext, node: Node) -> None:
        for index in node.outputs:
            context.set_dynamic(context.tensors[index])

    def eval(self, context: DelegateContext, node: Node) -> None:
        (inner, _), *_ = self.nodes
        a, b = (context.tensors[i].data for i in inner.inputs)
        target = context.tensors[inner.outputs[0]]
        context.resize_tensor(target, a.shape)
        np.multiply(a, b, out=target.data)


def test_a_static_delegate_is_refused_on_a_dynamic_graph() -> None:
    with pytest.raises(DelegateError, match="LiteRT refuses delegate 'by_name' without a word"):
        LiteRtInterpreter(
            model_content=positive_positions(),
            delegates=[ByName("MUL")],
            experimental_op_resolver_type=ALONE,
        )


def test_nodes_in_the_body_of_a_loop_are_delegated() -> None:
    delegate = ByName("ADD", flags=DYNAMIC)
    assert run(official(doubling(), delegate), np.array([3], np.float32)).tolist() == [13]
    assert delegate.calls.count("eval") == 3  # 3, 6 and the last addition


def test_variables_keep_their_values_between_invokes_and_are_reset() -> None:
    interpreter = official(remembering(), ByName("RNN", flags=DYNAMIC, kernel=Recurrent))
    one = np.ones((1, 1), np.float32)
    interpreter.allocate_tensors()
    found = []
    for step in range(4):
        if step == 3:
            interpreter.reset_all_variables()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], one)
        interpreter.invoke()
        found.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).item())
    assert found == [1, 1.5, 1.75, 1]


class Recurrent(ByNameKernel):
    """h = x + h / 2."""

    def prepare(self, context: DelegateContext, node: Node) -> None:
        assert context.tensors[self.nodes[0][0].inputs[4]].is_variable

    def eval(self, context: DelegateContext, node: Node) -> None:
        inner, _ = self.nodes[0]
        x, state = context.tensors[inner.inputs[0]].data, context.tensors[inner.inputs[4]].data
        state[...] = x + state / 2
        context.tensors[inner.outputs[0]].data[...] = state


# -- buffers of the delegate -----------------------------------------------------------------------


class Keeps(Delegate):
    """Claims SIN nodes and keeps their results to itself until somebody asks."""

    def __init__(self) -> None:
        self.kept: dict[int, NDArray[Any]] = {}
        self.freed: list[int] = []

    @property
    def flags(self) -> DelegateFlags:
        return DYNAMIC

    def name(self) -> str:
        return "keeps"

    def prepare(self, context: DelegateContext) -> None:
        def prepare(context: Any, node: Node) -> Any:
            (source,), (target,) = node.inputs, node.outputs
            context.set_buffer_handle(context.tensors[target], target, self)

            def compute() -> None:
                self.kept[target] = np.sin(context.tensors[source].data)
                context.tensors[target].data_is_stale = True

            return compute

        registration = Registration("keeps", prepare)
        context.replace_node_subsets_with_delegate_kernels(registration, [0, 3], self)

    def copy_from_buffer_handle(self, context: DelegateContext, tensor: Any) -> None:
        tensor.data[...] = self.kept[tensor.buffer_handle]

    def free_buffer_handle(self, context: DelegateContext, handle: int) -> None:
        self.freed.append(handle)


def test_a_delegates_buffers_are_copied_when_others_read_them_and_freed_in_the_end() -> None:
    delegate = Keeps()
    interpreter = official(sines(), delegate)
    np.testing.assert_allclose(run(interpreter, X), np.sin(X) + X + np.sin(2 * X), rtol=1e-6)
    assert len(delegate.kept) == 2
    del interpreter
    assert sorted(delegate.freed) == sorted(delegate.kept)


# -- strings, threads ------------------------------------------------------------------------------


def test_strings_are_read_and_written() -> None:
    tensors = {
        "x": tensor((3,), "STRING"),
        "i": constant(np.array([2, 0], np.int32)),
        "y": tensor((2,), "STRING"),
    }
    content = graph_model(
        [("GATHER", "x i", "y", GatherOptions())], inputs="x", outputs="y", tensors=tensors
    )
    interpreter = official(content, ByName("GATHER", flags=DYNAMIC, kernel=Gather))
    for words in ([b"one", b"two", b"three"], [b"", b"b", "\u00e9".encode()]):
        x = np.array(words, object)
        assert run(interpreter, x).tolist() == [words[2].upper(), words[0].upper()]


class Gather(ByNameKernel):
    """Takes elements, in capitals."""

    def prepare(self, context: DelegateContext, node: Node) -> None:
        inner, _ = self.nodes[0]
        shape = context.tensors[inner.inputs[1]].shape
        context.resize_tensor(context.tensors[inner.outputs[0]], shape)

    def eval(self, context: DelegateContext, node: Node) -> None:
        inner, _ = self.nodes[0]
        x, indices = (context.tensors[i].data for i in inner.inputs)
        context.tensors[inner.outputs[0]].data[...] = [x[i].upper() for i in indices]


def test_one_delegate_serves_several_threads() -> None:
    delegate = litert_delegate(ByName("SIN", "ADD", flags=DYNAMIC), model=sines())
    wrong: list[object] = []

    def work(seed: int) -> None:
        interpreter = litert.Interpreter(model_content=sines(), experimental_delegates=[delegate])
        rng = np.random.default_rng(seed)
        for _ in range(100):
            x = rng.standard_normal(4).astype(np.float32)
            if not np.allclose(run(interpreter, x), np.sin(x) + x + np.sin(2 * x), atol=1e-5):
                wrong.append(x)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
