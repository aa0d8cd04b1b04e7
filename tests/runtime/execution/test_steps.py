"""Nodes prepared and run one after the other, with shapes known only while invoking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from delegraph import Interpreter, Limits, Node, OpContext, Registration
from delegraph.errors import NodeError, OperatorError
from delegraph.operators.registration import Eval
from delegraph.schema.options import AddOptions, EqualOptions, VarHandleOptions
from delegraph.testing import constant, graph_model, tensor
from support.running import result_of

X = np.arange(6, dtype=np.float32)


def reshaped(*nodes: Any, outputs: str = "y") -> bytes:
    """r = reshape(x, shape), whose shape is known only while invoking, and *nodes* after it."""
    return graph_model(
        [("RESHAPE", "x shape", "r"), *nodes],
        inputs="x shape",
        outputs=outputs,
        tensors={"x": tensor((6,)), "shape": tensor((2,), "INT32")},
    )


def run(interpreter: Interpreter, shape: tuple[int, int], x: Any = X) -> Any:
    return result_of(interpreter, x, np.array(shape, np.int32))


def copying(check: Callable[[tuple[int, ...]], None]) -> Registration:
    """Return an operator that copies its input; *check* sees the input's shape first."""

    def prepare(context: OpContext, node: Node) -> Eval:
        x, y = context.tensors[node.inputs[0]], context.tensors[node.outputs[0]]
        check(x.shape)
        context.resize_tensor(y, x.shape)

        def copy() -> None:
            y.data[...] = x.data

        return copy

    return Registration("Copy", prepare)


def test_a_preparation_that_failed_while_invoking_is_done_again() -> None:
    refused = [(2, 3)]

    def check(shape: tuple[int, ...]) -> None:
        if shape in refused:
            raise ValueError(f"not {shape}")

    model = reshaped(("SIN", "r", "s"), ("Copy", "s", "y"))
    interpreter = Interpreter(model_content=model, custom_ops={"Copy": copying(check)})
    interpreter.allocate_tensors()
    for _ in range(2):
        with pytest.raises(NodeError, match=r"Node number 2 \(Copy\) failed to prepare: .*not"):
            run(interpreter, (2, 3))
    refused.clear()
    np.testing.assert_array_equal(run(interpreter, (2, 3)), np.sin(X.reshape(2, 3)), strict=True)


def test_nodes_are_prepared_again_only_for_another_shape() -> None:
    seen: list[tuple[int, ...]] = []
    model = reshaped(("Copy", "r", "y"))
    interpreter = Interpreter(model_content=model, custom_ops={"Copy": copying(seen.append)})
    interpreter.allocate_tensors()
    for shape in [(2, 3), (2, 3), (3, 2), (3, 2), (2, 3)]:
        assert run(interpreter, shape).shape == shape
    assert seen == [(2, 3), (3, 2), (2, 3)]


def two_reshapes() -> bytes:
    """q = r + r, s = reshape(q, back), y = copy(s): two shapes known only while invoking."""
    return graph_model(
        [
            ("RESHAPE", "x shape", "r"),
            ("ADD", "r r", "q", AddOptions()),
            ("RESHAPE", "q back", "s"),
            ("Copy", "s", "y"),
        ],
        inputs="x shape back",
        outputs="y",
        tensors={"x": tensor((6,)), "shape": tensor((2,), "INT32"), "back": tensor((2,), "INT32")},
    )


def test_a_node_after_two_open_shapes_is_prepared_once_for_each_change_before_it() -> None:
    seen: list[tuple[int, ...]] = []
    ops = {"Copy": copying(seen.append)}
    interpreter = Interpreter(model_content=two_reshapes(), custom_ops=ops)
    interpreter.allocate_tensors()
    for back in [(1, 6), (6, 1), (6, 1), (2, 3)]:
        interpreter.set_tensor(2, np.array(back, np.int32))
        for shape in [(2, 3), (3, 2)]:
            np.testing.assert_array_equal(run(interpreter, shape), 2 * X.reshape(back), strict=True)
    assert seen == [(1, 6)] * 2 + [(6, 1)] * 4 + [(2, 3)] * 2


def test_two_open_shapes_are_right_after_a_failure_between_them() -> None:
    seen: list[tuple[int, ...]] = []
    ops = {"Copy": copying(seen.append)}
    interpreter = Interpreter(model_content=two_reshapes(), custom_ops=ops)
    interpreter.allocate_tensors()
    limit = interpreter.session.memory_limit
    interpreter.set_tensor(2, np.array((1, 6), np.int32))
    allowed, limit.bytes = limit.bytes, 24 + 24  # x, and no more than one of the others
    for _ in range(2):
        with pytest.raises(NodeError, match="failed to allocate"):
            run(interpreter, (2, 3))
    limit.bytes = allowed
    run(interpreter, (2, 3))
    assert seen == [(1, 6)]


def arena_after(sizes: list[int]) -> int:
    """Return the bytes of the arena after invokes in which WHERE finds that many positions."""
    model = graph_model(
        [("WHERE", "x", "w"), ("CAST", "w", "a"), ("SIN", "a", "b"), ("SIN", "b", "y")],
        inputs="x",
        outputs="y",
        tensors={"x": tensor((1000,)), "w": tensor((1, 1), "INT64")},
    )
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    for size in sizes:
        x = np.zeros(1000, np.float32)
        x[:size] = 1
        y = result_of(interpreter, x)
        expected = np.sin(np.sin(np.arange(size, dtype=np.float32).reshape(-1, 1)))
        np.testing.assert_allclose(y, expected, rtol=1e-5)
    return interpreter.session.subgraphs[0].memory.arena_bytes[0]


def test_tensors_get_their_places_anew_for_another_shape() -> None:
    sizes = [300, 1000]
    assert arena_after(sizes) == arena_after(sizes[-1:])


def test_inputs_alone_may_be_too_large() -> None:
    model = graph_model([], inputs="x", outputs="x", tensors={"x": tensor((6,))})
    interpreter = Interpreter(model_content=model, limits=Limits(memory=16))
    with pytest.raises(OperatorError, match="the limit of 16 bytes"):
        interpreter.allocate_tensors()


def resizing(*, when: str, shape: tuple[int, ...]) -> Registration:
    """Return an operator that gives its second input and its output a shape, now or later."""

    def prepare(context: OpContext, node: Node) -> Eval:
        second, y = (context.tensors[i] for i in (node.inputs[1], *node.outputs))

        def resize() -> None:
            context.resize_tensor(y, (4,))
            context.resize_tensor(second, shape)

        if when == "prepare":
            resize()
            return lambda: None
        return resize

    return Registration("Resizing", prepare)


@pytest.mark.parametrize("when", ["prepare", "invoke"])
def test_a_node_gives_a_shape_to_its_own_tensors_and_to_none_that_is_fixed(when: str) -> None:
    fixed = {"c": constant(np.ones(4, np.float32))}
    model = graph_model([("Resizing", "x c", "y")], inputs="x", outputs="y", tensors=fixed)

    def run(shape: tuple[int, ...]) -> None:
        custom_ops = {"Resizing": resizing(when=when, shape=shape)}
        interpreter = Interpreter(model_content=model, custom_ops=custom_ops)
        interpreter.allocate_tensors()
        interpreter.invoke()

    run((4,))  # the shape it has
    why = "is constant and cannot" if when == "prepare" else r"cannot become \[5\] while invoking"
    with pytest.raises(NodeError, match=rf"failed to {when}: Tensor\(1, 'c', FLOAT32\[4\]\) {why}"):
        run((5,))


def test_an_input_that_nobody_has_set_is_named() -> None:
    words = {"x": tensor((2,), "STRING"), "y": tensor((1, 2), "STRING")}
    zero = {"axis": constant(np.int32(0))}
    model = graph_model(
        [("EXPAND_DIMS", "x axis", "y")], inputs="x", outputs="y", tensors={**words, **zero}
    )
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    with pytest.raises(NodeError, match=r"Input tensor 0 lacks data; set_tensor\(\) comes first"):
        interpreter.invoke()


Wiring = list[tuple[Any, ...]]

REFUSED_OUTPUTS: dict[str, tuple[Wiring, str, str]] = {
    "constant": (
        [("ABS", "x", "c")], "c", r"output Tensor\(\d, 'c', .*\) is constant and cannot be w",
    ),
    "constant of a node that leaves shapes alone": (
        [
            ("VAR_HANDLE", "", "v", VarHandleOptions(shared_name="v")),
            ("ASSIGN_VARIABLE", "v x", ""),
            ("READ_VARIABLE", "v", "c"),
        ],
        "c",
        r"output Tensor\(\d, 'c', .*\) is constant and cannot be w",
    ),
    "one tensor twice": (
        [("SPLIT", "axis x", "s s")], "s", r"has outputs \[\d, \d\], expected different tensors",
    ),
    "another shape, read before": (
        [("SIN", "s", "t"), ("ABS", "x", "s")], "s",
        r"'s'.* cannot become \[\d\]: node 0 reads it before",
    ),
    "another shape, written before": (
        [("SIN", "x", "s"), ("CONCATENATION", "x x", "s")], "s",
        r"'s'.* cannot become \[\d\]: node 0 writes it before",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED_OUTPUTS)
def test_outputs_that_cannot_be_written_are_refused(name: str) -> None:
    nodes, output, message = REFUSED_OUTPUTS[name]
    tensors = {
        "x": tensor((4,)), "axis": tensor((), "INT32"), "v": tensor((), "RESOURCE"),
        "s": tensor((2,)), "t": tensor((2,)), "c": constant(X[:4]),
    }  # fmt: skip
    used = " ".join(f"{node[1]} {node[2]}" for node in nodes).split()
    model = graph_model(
        nodes, inputs="axis x" if "axis" in used else "x", outputs=output,
        tensors={key: value for key, value in tensors.items() if key in used},
    )  # fmt: skip
    with (
        Interpreter(model_content=model) as interpreter,
        pytest.raises(NodeError, match=message),
    ):
        interpreter.allocate_tensors()


def test_an_output_keeps_the_type_for_which_a_node_was_prepared() -> None:
    nodes = [("ABS", "x", "y"), ("EQUAL", "x x", "y", EqualOptions())]
    model = graph_model(nodes, inputs="x", outputs="y")
    with (
        Interpreter(model_content=model) as interpreter,
        pytest.raises(NodeError, match="cannot change from FLOAT32 to BOOL: node 0 writes it"),
    ):
        interpreter.allocate_tensors()


def test_an_output_that_another_node_writes_is_not_left_open() -> None:
    nodes = [("ADD", "x x", "y", AddOptions()), ("TOPK_V2", "x k", "y i")]
    tensors = {"x": tensor((4,)), "k": tensor((), "INT32"), "i": tensor((4,), "INT32")}
    model = graph_model(nodes, inputs="x k", outputs="y i", tensors=tensors)
    with pytest.raises(NodeError, match=r"1 \(TOPK_V2\).*cannot be left open: node 0 writes it"):
        Interpreter(model_content=model, delegates=[]).allocate_tensors()


def test_a_variable_keeps_the_shape_in_which_it_got_memory() -> None:
    tensors = {"n": tensor((1,), "INT32"), "r": tensor((2,)), "v": tensor((2,), is_variable=True)}
    nodes = [("RESHAPE", "x n", "r"), ("CONCATENATION", "x x", "v")]
    model = graph_model(nodes, inputs="x n", outputs="v", tensors=tensors)
    with Interpreter(model_content=model) as interpreter:
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[1]["index"], np.array([4], np.int32))
        with pytest.raises(NodeError, match=r"variable .*'v'.* cannot become \[8\]: it got memory"):
            interpreter.invoke()
