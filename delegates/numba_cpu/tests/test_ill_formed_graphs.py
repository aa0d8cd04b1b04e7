"""Graphs that are not well-formed end in an error before any compiled code runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delegated import delegated
from delegraph import Interpreter
from delegraph.errors import NodeError
from delegraph.schema import options as o
from delegraph.schema.enums import TensorType
from delegraph.testing import constant, delegraph_outputs, graph_model, tensor

SHAPE = constant(np.array([64, 64], np.int32))
MANY = (4096,)


def interpreter_of(nodes: list[Any], tensors: dict[str, Any]) -> Interpreter:
    content = graph_model(nodes, inputs="x", outputs="y", tensors=tensors)
    return delegated(content, num_threads=1)


def owners(interpreter: Interpreter) -> list[str | None]:
    return [node.delegate for node in interpreter.placement.nodes]


@pytest.mark.parametrize(
    ("nodes", "tensors"),
    [
        (
            [("RELU", "x", "r"), ("RESHAPE", "r shape", "y", o.ReshapeOptions())],
            {"x": tensor(MANY), "r": tensor(MANY), "y": tensor((64, 64), "INT8")},
        ),
        (
            [("RESHAPE", "x shape", "r", o.ReshapeOptions()), ("RELU", "r", "y")],
            {"x": tensor(MANY, "INT8"), "r": tensor((64, 64)), "y": tensor((64, 64))},
        ),
    ],
    ids=["wide to narrow", "narrow to wide"],
)
def test_elements_of_another_width_are_not_claimed(
    nodes: list[Any], tensors: dict[str, Any]
) -> None:
    interpreter = interpreter_of(nodes, {**tensors, "shape": SHAPE})
    reshape = next(i for i, (op, *_) in enumerate(nodes) if op == "RESHAPE")
    assert owners(interpreter)[reshape] is None
    with pytest.raises(NodeError, match=r"\(RESHAPE\) failed to prepare: output is"):
        interpreter.allocate_tensors()


def test_what_an_ill_formed_node_would_tell_is_no_parameter() -> None:
    nodes = [
        ("SHAPE", "z", "axis", o.ShapeOptions(out_type=TensorType.FLOAT32)),
        ("REVERSE_V2", "x axis", "y", o.ReverseV2Options()),
    ]
    tensors = {"x": tensor((1, 1)), "z": tensor((1,)), "axis": tensor((1,), "INT32")}
    interpreter = interpreter_of(nodes, tensors)
    assert owners(interpreter) == [None, None]
    with pytest.raises(NodeError, match=r"\(SHAPE\) failed to prepare: option out_type is FLOAT32"):
        interpreter.allocate_tensors()


def test_an_input_that_nothing_gives_values_is_not_read() -> None:
    interpreter = interpreter_of([("ADD", "x z", "y", o.AddOptions())], {})
    assert owners(interpreter) == [None]
    interpreter.allocate_tensors()
    with pytest.raises(NodeError, match="Input tensor 1 lacks data"):
        interpreter.invoke()


def test_what_follows_an_open_shape_is_refused_while_invoking() -> None:
    nodes = [
        ("WHERE", "x", "w", o.WhereOptions()),
        ("CAST", "w", "f", o.CastOptions()),
        ("ADD", "f b", "y", o.AddOptions()),
    ]
    tensors = {
        "x": tensor((4,), "BOOL"),
        "w": tensor((4, 1), "INT64"),
        "f": tensor((4, 1)),
        "b": constant(np.ones((3, 1), np.float32)),
        "y": tensor((4, 1)),
    }
    interpreter = interpreter_of(nodes, tensors)
    assert owners(interpreter)[2] == "numba_cpu"
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.array([True, True, False, False]))
    with pytest.raises(NodeError, match=r"Node number 2 \(ADD\) failed to prepare: .*in place of"):
        interpreter.invoke()


def test_what_follows_an_open_shape_and_lacks_an_input_is_not_claimed() -> None:
    nodes = [("WHERE", "x", "w", o.WhereOptions()), ("SELECT", "w", "y")]
    tensors = {"x": tensor((4,), "BOOL"), "w": tensor((4, 1), "INT64"), "y": tensor((4, 1))}
    interpreter = interpreter_of(nodes, tensors)
    left = interpreter.placement.nodes[1]
    assert str(left.rejections["numba_cpu"]) == "input 1 is absent, and SELECT needs it"


def test_a_type_that_turns_out_to_be_another_is_told_in_words() -> None:
    nodes = [("ADD", "a a", "s", o.AddOptions()), ("ADD", "s s", "y", o.AddOptions())]
    tensors = {"a": tensor((), "FLOAT16"), "s": tensor((2,)), "y": tensor((2,))}
    interpreter = interpreter_of([("SIN", "x", "z"), *nodes], tensors)
    with pytest.raises(NodeError, match="turned out to be FLOAT16"):
        interpreter.allocate_tensors()


def test_working_memory_obeys_the_limit() -> None:
    options = o.DepthwiseConv2DOptions(
        stride_w=1, stride_h=1, depth_multiplier=1, dilation_h_factor=2**31 - 1
    )
    weight = constant(np.ones((1, 3, 3, 8), np.float32))
    image = tensor((1, 16, 16, 8))
    nodes = [("DEPTHWISE_CONV_2D", "x w b", "y", options)]
    tensors = {"x": image, "w": weight, "b": constant(np.ones(8, np.float32)), "y": image}
    interpreter = interpreter_of(nodes, tensors)
    with pytest.raises(NodeError, match=r"needs \d+ bytes, more than the limit"):
        interpreter.allocate_tensors()


@pytest.mark.parametrize("op", ["GATHER", "GATHER_ND"])
def test_a_constant_position_outside_the_input_is_left_to_the_core(op: str) -> None:
    options = o.GatherOptions() if op == "GATHER" else o.GatherNdOptions()
    tensors = {"x": tensor((6, 2)), "p": constant(np.array([[-1]], np.int32))}
    interpreter = interpreter_of([(op, "x p", "y", options)], tensors)
    assert owners(interpreter) == [None]
    interpreter.allocate_tensors()
    with pytest.raises(NodeError, match="failed to invoke: position -1 is outside"):
        interpreter.invoke()


def test_an_image_without_height_and_width_is_left_to_the_core() -> None:
    weight = constant(np.ones((2, 1, 1, 3), np.float32))
    options = o.Conv2DOptions(stride_w=1, stride_h=1)
    tensors = {"x": tensor((1, 3)), "w": weight, "b": constant(np.ones(2, np.float32))}
    interpreter = interpreter_of([("CONV_2D", "x w b", "y", options)], tensors)
    assert owners(interpreter) == [None]
    with pytest.raises(NodeError, match="expected 4 dimensions each"):
        interpreter.allocate_tensors()


def test_a_tensor_that_no_machine_holds_obeys_the_limit() -> None:
    begin, end = (constant(np.full(4, n, np.int32)) for n in (0, 1))
    nodes = [("STRIDED_SLICE", "x begin end end", "y", o.StridedSliceOptions())]
    tensors = {"x": tensor((1, 2**29, 166, 8)), "begin": begin, "end": end, "y": tensor((1,) * 4)}
    interpreter = interpreter_of(nodes, tensors)
    assert owners(interpreter) == ["numba_cpu"]
    with pytest.raises(NodeError, match=r"the plan needs \d+ bytes of \d+ allowed"):
        interpreter.allocate_tensors()


def test_weights_of_no_outputs_are_refused_in_words() -> None:
    tensors = {
        "x": tensor((1, 4), "INT8", scale=0.5),
        "w": constant(np.ones((0, 4), np.int8), scale=0.5),
        "y": tensor((1, 0), "INT8", scale=0.5),
    }
    nodes = [("FULLY_CONNECTED", "x w", "y", o.FullyConnectedOptions())]
    left = interpreter_of(nodes, tensors).placement.nodes[0]
    assert str(left.rejections["numba_cpu"]).startswith("weights-shape")


def test_a_widener_without_inputs_is_no_constant() -> None:
    nodes = [
        ("DEQUANTIZE", "", "b"),
        ("CONV_2D", "x w b", "y", o.Conv2DOptions(stride_w=1, stride_h=1)),
    ]
    weight = constant(np.ones((16, 3, 3, 3), np.float32))
    tensors = {
        "x": tensor((1, 5, 5, 3)),
        "w": weight,
        "b": tensor((16,)),
        "y": tensor((1, 5, 5, 16)),
    }
    interpreter = interpreter_of(nodes, tensors)
    assert owners(interpreter) == [None, None]
    with pytest.raises(NodeError, match="node has 0 inputs"):
        interpreter.allocate_tensors()


def test_stacks_that_a_resize_made_unequal_are_computed() -> None:
    nodes = [("BATCH_MATMUL", "x w", "y", o.BatchMatMulOptions())]
    tensors = {"x": tensor((5, 4, 2, 1)), "w": tensor((5, 4, 1, 2)), "y": tensor((5, 4, 2, 2))}
    content = graph_model(nodes, inputs="x w", outputs="y", tensors=tensors)
    x = np.arange(10, dtype=np.float32).reshape(5, 1, 2, 1)
    w = np.arange(40, dtype=np.float32).reshape(5, 4, 1, 2)
    (y,) = delegraph_outputs(content, [x, w], delegates=["numba_cpu"])
    np.testing.assert_array_equal(y, x @ w)
