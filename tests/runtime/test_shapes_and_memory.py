"""Dynamic shapes, variables, views and limits of a running model."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from delegraph import (
    Interpreter,
    Limits,
    Node,
    OpContext,
    OpResolverType,
    Registration,
    register_custom_op,
)
from delegraph.errors import ArgumentError, NodeError, ResizeError, UnresolvedOpError
from delegraph.schema.options import AddOptions, MulOptions
from delegraph.testing import constant, delegraph_outputs, graph_model, tensor
from support.official import official_outputs
from support.running import result_of


def reshape_then_add() -> bytes:
    """r = reshape(x, shape); y = r + r: the shape is known only while invoking."""
    return graph_model(
        [
            ("RESHAPE", "x shape", "r"),
            ("ADD", "r r", "a", AddOptions()),
            ("MUL", "a a", "y", MulOptions()),
        ],
        inputs="x shape",
        outputs="y",
        tensors={"x": tensor((6,)), "shape": tensor((2,), "INT32")},
    )


def test_shapes_may_change_at_every_invoke() -> None:
    interpreter = Interpreter(model_content=reshape_then_add())
    interpreter.allocate_tensors()
    x = np.arange(6, dtype=np.float32)
    for shape in ([2, 3], [3, 2], [3, 2], [6, 1], [-1, 2]):
        y = result_of(interpreter, x, np.array(shape, np.int32))
        np.testing.assert_array_equal(y, (2 * x.reshape(shape)) ** 2)


def test_failure_behind_an_open_shape_leaves_the_interpreter_usable() -> None:
    interpreter = Interpreter(model_content=reshape_then_add())
    interpreter.allocate_tensors()
    x = np.arange(6, dtype=np.float32)
    for _ in range(2):
        with pytest.raises(NodeError, match=r"Node number 0 \(RESHAPE\) failed to invoke"):
            result_of(interpreter, x, np.array([4, 4], np.int32))
    y = result_of(interpreter, x, np.array([2, 3], np.int32))
    np.testing.assert_array_equal(y, (2 * x.reshape(2, 3)) ** 2)


def test_resized_input_resizes_what_follows() -> None:
    model = graph_model(
        [("ADD", "x one", "a", AddOptions()), ("MUL", "a a", "y", MulOptions())],
        inputs="x",
        outputs="y",
        tensors={"x": tensor((1, 4)), "one": constant(np.ones((1, 4), np.float32))},
    )
    interpreter = Interpreter(model_content=model)
    for rows in (1, 5, 2, 0):
        interpreter.resize_tensor_input(0, [rows, 4])
        interpreter.allocate_tensors()
        x = np.full((rows, 4), 2, np.float32)
        np.testing.assert_array_equal(result_of(interpreter, x), np.full((rows, 4), 9, np.float32))


def test_arena_tensors_are_aligned_and_share_memory() -> None:
    nodes: list[Any] = [("SIN", f"t{i}", f"t{i + 1}") for i in range(20)]
    model = graph_model(nodes, inputs="t0", outputs="t20")
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    tensors = interpreter.session.subgraphs[0].tensors
    addresses = [t.data.__array_interface__["data"][0] for t in tensors]
    assert all(address % 64 == 0 for address in addresses)
    assert len(set(addresses)) <= 4


def test_preserved_tensors_keep_every_value() -> None:
    nodes: list[Any] = [("SIN", f"t{i}", f"t{i + 1}") for i in range(6)]
    model = graph_model(nodes, inputs="t0", outputs="t6")
    with pytest.warns(UserWarning, match="Enabling `experimental_preserve_all_tensors` with the"):
        interpreter = Interpreter(model_content=model, experimental_preserve_all_tensors=True)
    interpreter.allocate_tensors()
    expected = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    result_of(interpreter, expected)
    for index in range(7):
        np.testing.assert_allclose(interpreter.get_tensor(index), expected, rtol=1e-6)
        expected = np.sin(expected)


def test_inputs_keep_their_values_between_invokes() -> None:
    nodes: list[Any] = [("SIN", f"t{i}", f"t{i + 1}") for i in range(6)]
    interpreter = Interpreter(model_content=graph_model(nodes, inputs="t0", outputs="t6"))
    interpreter.allocate_tensors()
    first = result_of(interpreter, np.ones(4, np.float32))
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(6), first)


def test_views_read_and_write_the_tensors_memory() -> None:
    model = graph_model([("SIN", "x", "y")], inputs="x", outputs="y")
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    source, target = interpreter.tensor(0), interpreter.tensor(1)
    source()[...] = [0, 1, 2, 3]
    interpreter.invoke()
    np.testing.assert_allclose(target(), np.sin([0, 1, 2, 3]), rtol=1e-6)


def test_constants_are_views_of_the_mapped_file(tmp_path: Path) -> None:
    weight = np.ones(1_000_000, np.float32)
    model = graph_model(
        [("ADD", "x w", "y", AddOptions())],
        inputs="x",
        outputs="y",
        tensors={"w": constant(weight), "x": tensor((1,)), "y": tensor((1_000_000,))},
    )
    path = tmp_path / "large.tflite"
    path.write_bytes(model)
    del model
    Interpreter(model_path=path).close()  # first use imports and caches
    gc.collect()
    tracemalloc.start()
    interpreter = Interpreter(model_path=path)
    grown = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert grown < 1_000_000
    assert not interpreter.session.subgraphs[0].tensors[1].data.flags.writeable


def test_memory_limit_is_an_error_that_names_node_and_bytes() -> None:
    model = graph_model(
        [("SIN", "x", "y")], inputs="x", outputs="y", tensors={"x": tensor((1000, 1000))}
    )
    interpreter = Interpreter(model_content=model, limits=Limits(memory=1_000_000))
    with pytest.raises(NodeError, match=r"Node number 0 \(SIN\).*1000000.*Limits\(memory="):
        interpreter.allocate_tensors()
    with pytest.raises(ResizeError, match="limit"):
        interpreter.resize_tensor_input(0, [2**31 - 1, 2**31 - 1])


def test_tensor_that_is_input_and_output_of_a_node_is_refused() -> None:
    model = graph_model([("ADD", "x y", "y", AddOptions())], inputs="x", outputs="y")
    with pytest.raises(NodeError, match="Tensor 1 is both input 1 and output 0"):
        Interpreter(model_content=model).allocate_tensors()


def double(context: OpContext, node: Node) -> Any:
    x, y = context.tensors[node.inputs[0]], context.tensors[node.outputs[0]]
    context.resize_tensor(y, x.shape)
    scratch = context.scratch(x.shape, np.float64)

    def compute() -> None:
        np.multiply(x.data, 2, out=scratch.data)
        y.data[...] = scratch.data

    return compute


CUSTOM = graph_model([("Double", "x", "y")], inputs="x", outputs="y")


def test_custom_operator_of_one_interpreter() -> None:
    interpreter = Interpreter(
        model_content=CUSTOM, custom_ops={"Double": Registration("Double", double)}
    )
    interpreter.allocate_tensors()
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(result_of(interpreter, x), 2 * x)


def test_registered_custom_operator_is_known_to_later_interpreters() -> None:
    model = graph_model([("DoubleForAll", "x", "y")], inputs="x", outputs="y")
    with pytest.raises(UnresolvedOpError, match="DoubleForAll"):
        Interpreter(model_content=model).allocate_tensors()
    register_custom_op("DoubleForAll", Registration("DoubleForAll", double))
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(result_of(interpreter, x), 2 * x)
    with pytest.raises(ArgumentError, match="name"):
        register_custom_op("", Registration("", double))


def test_failing_custom_operator_is_named_with_its_cause() -> None:
    def broken(context: OpContext, node: Node) -> Any:
        def compute() -> None:
            raise ZeroDivisionError("oops")

        return compute

    interpreter = Interpreter(
        model_content=CUSTOM, custom_ops={"Double": Registration("Double", broken)}
    )
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.zeros(4, np.float32))
    with pytest.raises(NodeError, match=r"Node number 0 \(Double\) failed to invoke: ZeroDiv"):
        interpreter.invoke()


def test_variables_persist_until_they_are_reset() -> None:
    model = graph_model(
        [("ADD", "state x", "y", AddOptions()), ("Store", "y state", "done")],
        inputs="x",
        outputs="y done",
        tensors={"state": tensor((4,), is_variable=True)},
    )

    def store(context: OpContext, node: Node) -> Any:
        source, state = (context.tensors[i] for i in node.inputs)
        return lambda: np.copyto(state.data, source.data)

    interpreter = Interpreter(model_content=model, custom_ops={"Store": Registration("S", store)})
    interpreter.allocate_tensors()
    one = np.ones(4, np.float32)
    assert [result_of(interpreter, one)[0] for _ in range(3)] == [1, 2, 3]
    interpreter.reset_all_variables()
    assert result_of(interpreter, one)[0] == 1


@pytest.mark.parametrize(
    ("arguments", "numerics"),
    [
        ({}, "builtin"),
        ({"numerics": "reference"}, "reference"),
        ({"experimental_op_resolver_type": OpResolverType.BUILTIN_REF}, "reference"),
    ],
)
def test_numerics_follow_the_argument_or_the_resolver(
    arguments: dict[str, Any], numerics: str
) -> None:
    interpreter = Interpreter(model_content=CUSTOM, **arguments)
    assert interpreter.numerics == numerics
    assert interpreter.session.subgraphs[0].context.numerics == numerics


def test_unknown_numerics_are_refused_with_the_choices() -> None:
    with pytest.raises(ArgumentError, match="'builtin', 'reference'"):
        Interpreter(model_content=CUSTOM, numerics="exact")  # type: ignore[arg-type]


def test_memory_is_free_as_soon_as_the_interpreter_is_gone() -> None:
    model = graph_model([("SIN", "x", "y")], inputs="x", outputs="y")
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    tensors = interpreter.session.subgraphs[0].tensors
    buffer = weakref.ref(tensors[0].data.base)
    steps = interpreter.session.subgraphs[0].steps.evals
    del tensors
    gc.disable()
    try:
        assert buffer() is not None
        del interpreter
        assert buffer() is None
        assert steps == []
    finally:
        gc.enable()


def test_view_outlives_its_interpreter() -> None:
    model = graph_model([("SIN", "x", "y")], inputs="x", outputs="y")
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    result_of(interpreter, np.zeros(4, np.float32))
    view = interpreter.tensor(1)()
    del interpreter
    np.testing.assert_array_equal(view, np.zeros(4))


def test_default_limit_holds_for_the_models_shapes_and_not_for_the_users() -> None:
    shape = (1, 200 << 20)
    model = graph_model(
        [("SIN", "x", "y")], inputs="x", outputs="y", tensors={"x": tensor(shape, "FLOAT32")}
    )
    with pytest.raises(NodeError, match=r"Limits\(memory="):
        Interpreter(model_content=model).allocate_tensors()
    Interpreter(model_content=model, limits=Limits(memory=4 << 30)).allocate_tensors()
    small = graph_model([("SIN", "x", "y")], inputs="x", outputs="y")
    interpreter = Interpreter(model_content=small)
    interpreter.resize_tensor_input(0, shape)
    interpreter.allocate_tensors()


def test_shape_that_no_array_can_have_is_refused_even_without_elements() -> None:
    model = graph_model([("SIN", "x", "y")], inputs="x", outputs="y")
    interpreter = Interpreter(model_content=model)
    with pytest.raises(ResizeError, match="cannot have shape"):
        interpreter.resize_tensor_input(0, [0, 2**31 - 1, 2**31 - 1])


def test_a_variable_that_is_computed_while_preparing_keeps_its_value() -> None:
    half = constant(np.float16([1, 2, 3, 4]))
    content = graph_model(
        [("DEQUANTIZE", "half", "v"), ("ADD", "x v", "y", AddOptions())],
        inputs="x",
        outputs="y",
        tensors={"half": half, "v": tensor((4,), is_variable=True)},
    )
    (found,) = delegraph_outputs(content, [np.ones(4, np.float32)])
    (expected,) = official_outputs(content, [np.ones(4, np.float32)])
    np.testing.assert_array_equal(found, expected)


def test_a_variable_whose_zero_point_is_no_int8_starts_with_its_low_byte() -> None:
    state = tensor((4,), "INT8", scale=0.5, zero_point=300, is_variable=True)
    nodes = [("SIN", "x", "y"), ("DEQUANTIZE", "state", "z")]
    model = graph_model(nodes, inputs="x", outputs="y z", tensors={"state": state})
    with Interpreter(model_content=model) as interpreter:
        interpreter.allocate_tensors()
        index = next(d["index"] for d in interpreter.get_tensor_details() if d["dtype"] == np.int8)
        np.testing.assert_array_equal(interpreter.get_tensor(index), np.full(4, 300 - 256))
