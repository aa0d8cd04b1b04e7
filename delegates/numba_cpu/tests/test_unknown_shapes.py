"""Shapes that depend on values, against Delegraph's own kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegated import assert_near, delegated, run
from delegraph import Interpreter
from delegraph.errors import NodeError
from delegraph.schema import options as o
from delegraph.schema.enums import TensorType
from delegraph.testing import constant, graph_model, tensor

CONV = o.Conv2DOptions(stride_h=1, stride_w=1)
DEPTHWISE = o.DepthwiseConv2DOptions(stride_h=1, stride_w=1, depth_multiplier=1)


def model(op: str, kind: str, weight_kind: str) -> bytes:
    """Return a convolution of 8 channels behind a RESHAPE to a shape that is fed."""
    generator = np.random.default_rng(0)
    shape, axis = ((8, 3, 3, 8), 0) if op == "CONV_2D" else ((1, 3, 3, 8), 3)
    values = generator.integers(-127, 128, shape).astype(weight_kind.lower())
    scales = {"scale": [0.01] * 8, "axis": axis} if weight_kind == "INT8" else {}
    scale = {"scale": 0.5} if kind == "INT8" else {}
    bias = {"scale": [0.005] * 8} if kind == "INT8" else {}
    return graph_model(
        [("RESHAPE", "x shape", "images"), (op, "images w b", "y", OPTIONS[op])],
        inputs="x shape",
        outputs="y",
        tensors={
            "x": tensor((800,), kind, **scale),
            "shape": tensor((4,), "INT32"),
            "images": tensor((), kind, **scale),
            "w": constant(values, weight_kind, **scales),
            "b": constant(np.arange(8, dtype=np.int32 if kind == "INT8" else np.float32), **bias),
            "y": tensor((), kind, **scale),
        },
    )


OPTIONS: dict[str, Any] = {"CONV_2D": CONV, "DEPTHWISE_CONV_2D": DEPTHWISE}
KINDS = [("FLOAT32", "FLOAT32"), ("FLOAT32", "INT8"), ("INT8", "INT8")]


def reshaped(interpreter: Interpreter, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return the result for images of a shape that is fed."""
    dtype = interpreter.get_input_details()[0]["dtype"]
    values = np.random.default_rng(1).integers(-100, 100, 800).astype(dtype)
    return run(interpreter, values, np.array(shape, np.int32))


def interpreters(content: bytes) -> tuple[Interpreter, Interpreter]:
    ours, theirs = delegated(content, num_threads=1), Interpreter(model_content=content)
    assert [node.delegate for node in ours.placement.nodes] == [None, "numba_cpu"]
    for interpreter in (ours, theirs):
        interpreter.allocate_tensors()
    return ours, theirs


@pytest.mark.parametrize("op", OPTIONS)
@pytest.mark.parametrize(("kind", "weight_kind"), KINDS)
def test_shapes_may_be_known_only_while_invoking(op: str, kind: str, weight_kind: str) -> None:
    ours, theirs = interpreters(model(op, kind, weight_kind))
    for shape in ((1, 10, 10, 8), (4, 5, 5, 8), (1, 20, 5, 8)):
        found, expected = reshaped(ours, shape), reshaped(theirs, shape)
        assert_near(found, expected)


@pytest.mark.parametrize(("kind", "weight_kind"), KINDS)
def test_channels_may_turn_out_to_be_groups(kind: str, weight_kind: str) -> None:
    ours, theirs = interpreters(model("CONV_2D", kind, weight_kind))
    for shape in ((1, 10, 5, 16), (1, 10, 10, 8), (1, 5, 5, 32)):
        found, expected = reshaped(ours, shape), reshaped(theirs, shape)
        assert_near(found, expected)


@pytest.mark.parametrize(("kind", "weight_kind"), KINDS)
def test_channels_that_do_not_divide_into_groups_are_an_error(kind: str, weight_kind: str) -> None:
    ours, _ = interpreters(model("CONV_2D", kind, weight_kind))
    with pytest.raises(NodeError, match="20 channels"):
        reshaped(ours, (1, 10, 4, 20))


def test_dimensions_that_follow_from_a_shape_follow_each_resize() -> None:
    """As where a layer over time, with any number of steps, makes room for its outputs."""
    nodes: list[Any] = [
        ("TRANSPOSE", "x time_first", "steps"),
        ("SHAPE", "steps", "shape", o.ShapeOptions(out_type=TensorType.INT32)),
        ("STRIDED_SLICE", "shape begin end stride", "n", o.StridedSliceOptions(shrink_axis_mask=1)),
        ("RESHAPE", "n one", "ns"),
        ("CONCATENATION", "ns rest", "dims", o.ConcatenationOptions()),
        ("FILL", "dims value", "y"),
    ]
    content = graph_model(
        nodes,
        inputs="x",
        outputs="y steps",
        tensors={
            "x": tensor((1, 1, 3), shape_signature=(1, -1, 3)),
            "time_first": constant(np.int32([1, 0, 2])),
            "steps": tensor((1, 1, 3), shape_signature=(-1, 1, 3)),
            "shape": tensor((3,), "INT32"),
            "begin": constant(np.int32([0])),
            "end": constant(np.int32([1])),
            "stride": constant(np.int32([1])),
            "n": tensor((), "INT32"),
            "one": constant(np.int32([1])),
            "ns": tensor((1,), "INT32"),
            "rest": constant(np.int32([1, 7])),
            "dims": tensor((3,), "INT32"),
            "value": constant(np.float32(0.5)),
            "y": tensor((1, 1, 7), shape_signature=(-1, 1, 7)),
        },
    )
    interpreter = delegated(content)
    assert "FILL" in str(interpreter.placement.to_json())
    for steps in (1, 5, 5, 2, 1):
        y = run(interpreter, np.ones((1, steps, 3), np.float32))
        np.testing.assert_array_equal(y, np.full((steps, 1, 7), np.float32(0.5)), strict=True)
