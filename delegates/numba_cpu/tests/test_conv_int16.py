"""Products of 16-bit activations and 8-bit weights, against Delegraph's own kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from delegated import delegate, delegated, levels, run
from delegraph import Interpreter, Rejection
from delegraph.errors import ModelError
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.enums import Padding
from delegraph.schema.options import Conv2DOptions, DepthwiseConv2DOptions, FullyConnectedOptions
from delegraph.testing import constant, one_op_model, tensor
from delegraph_numba_cpu.delegate import NumbaCpuDelegate
from support.convolutions import window

BIASES = ["INT64", "INT32"]
X_SCALE, WEIGHT_SCALE = 3e-4, 0.005

Array = NDArray[Any]


class Node:
    """A model of one operator, and its input.

    Args:
        op: its name.
        shape: of the input.
        weight_shape: of the weights.
        options: of the operator.
        bias: type of the bias; None for no bias.
        per_channel: whether weights have a scale for each output.
        is_extreme: whether all values are at the ends of their range.
        y_scale: of the output; chosen to suit the weights if not given.
    """

    def __init__(
        self,
        op: str,
        shape: tuple[int, ...],
        weight_shape: tuple[int, ...],
        options: Any,
        *,
        bias: str | None = "INT64",
        per_channel: bool = True,
        is_extreme: bool = False,
        y_scale: float | None = None,
    ) -> None:
        rng = np.random.default_rng([*shape, *weight_shape])
        axis = 3 if op == "DEPTHWISE_CONV_2D" else 0
        outputs = weight_shape[axis]
        taps = math.prod(weight_shape) // outputs
        weight = rng.integers(-127, 128, weight_shape).astype(np.int8)
        self.x = rng.integers(-32768, 32768, shape).astype(np.int16)
        if is_extreme:
            weight[...], self.x[...] = -128, -32768
        scales = WEIGHT_SCALE * rng.uniform(0.3, 1, outputs if per_channel else 1)
        inputs = [
            tensor(shape, "INT16", scale=X_SCALE),
            constant(weight, scale=scales.tolist(), axis=axis),
        ]
        if bias is not None:
            values = rng.integers(-(10**6), 10**6, outputs).astype(bias.lower())
            scale = (np.float32(X_SCALE) * scales.astype(np.float32)).tolist()
            inputs.append(constant(values, scale=scale))
        y_scale = X_SCALE * WEIGHT_SCALE * 50 * math.sqrt(taps) if y_scale is None else y_scale
        output = tensor((), "INT16", scale=y_scale)
        self.model = one_op_model(op, inputs, [output], options)

    def results(self, delegate: NumbaCpuDelegate | None = None) -> tuple[Array, Any]:
        """Return the output, and the placement of the node."""
        delegates = [] if delegate is None else [delegate]
        interpreter = Interpreter(model_content=self.model, experimental_delegates=delegates)
        return run(interpreter, self.x), interpreter.placement.nodes[0]

    def assert_agrees(self, level: str = "auto", threads: int = 1) -> None:
        """Check that the node is taken, and gives the same bits."""
        found, node = self.results(delegate(level, num_threads=threads))
        assert node.delegate == "numba_cpu"
        np.testing.assert_array_equal(found, self.results()[0])

    def refusal(self) -> Rejection:
        """Return why the node is not taken."""
        _, node = self.results(delegate())
        assert node.delegate is None
        refused: Rejection = node.rejections["numba_cpu"]
        return refused


def conv(
    shape: tuple[int, ...],
    outputs: int,
    kernel: tuple[int, int] = (3, 3),
    stride: int = 1,
    dilation: int = 1,
    padding: Padding = Padding.SAME,
    groups: int = 1,
    activation: Act = Act.NONE,
    **given: Any,
) -> Node:
    options = Conv2DOptions(**window((stride,) * 2, (dilation,) * 2, padding, activation))
    weight_shape = (outputs, *kernel, shape[3] // groups)
    return Node("CONV_2D", shape, weight_shape, options, **given)


def depthwise(
    shape: tuple[int, ...],
    outputs: int,
    kernel: tuple[int, int] = (3, 3),
    stride: int = 1,
    dilation: int = 1,
    padding: Padding = Padding.SAME,
    **given: Any,
) -> Node:
    around = window((stride,) * 2, (dilation,) * 2, padding)
    options = DepthwiseConv2DOptions(depth_multiplier=outputs // shape[3], **around)
    return Node("DEPTHWISE_CONV_2D", shape, (1, *kernel, outputs), options, **given)


def dense(shape: tuple[int, int], outputs: int, **given: Any) -> Node:
    return Node("FULLY_CONNECTED", shape, (outputs, shape[1]), FullyConnectedOptions(), **given)


GEOMETRIES = [
    ((3, 3), 1, 1, Padding.SAME),
    ((3, 3), 2, 1, Padding.SAME),
    ((1, 1), 1, 1, Padding.VALID),
    ((2, 5), 1, 2, Padding.SAME),
    ((5, 1), 3, 1, Padding.VALID),
]


@levels
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_any_windows(geometry: Any, level: str) -> None:
    for bias in BIASES:
        conv((2, 11, 13, 5), 20, *geometry, bias=bias).assert_agrees(level)
    depthwise((2, 11, 13, 21), 21, *geometry).assert_agrees(level)


@levels
@pytest.mark.parametrize(("channels", "outputs"), [(1, 1), (3, 16), (17, 33), (40, 5), (64, 64)])
def test_any_numbers_of_channels(channels: int, outputs: int, level: str) -> None:
    conv((1, 5, 6, channels), outputs, (1, 1)).assert_agrees(level)
    conv((1, 5, 6, channels), outputs, activation=Act.RELU).assert_agrees(level)
    depthwise((1, 5, 6, outputs), outputs).assert_agrees(level)
    depthwise((1, 5, 6, 1), outputs).assert_agrees(level)


@levels
@pytest.mark.parametrize("bias", [*BIASES, None])
@pytest.mark.parametrize("depth", [1, 2, 255, 256, 257, 700])
def test_matrix_products_of_any_depth(depth: int, bias: str | None, level: str) -> None:
    for rows, per_channel in ((1, True), (6, False)):
        dense((rows, depth), 35, bias=bias, per_channel=per_channel).assert_agrees(level)


@levels
def test_largest_products_are_added_up_exactly(level: str) -> None:
    for y_scale in (1e-4, 30.0):
        dense((5, 3000), 17, is_extreme=True, y_scale=y_scale).assert_agrees(level)
        conv((1, 3, 3, 300), 17, is_extreme=True, y_scale=y_scale).assert_agrees(level)
        depthwise((1, 16, 16, 17), 17, (16, 16), is_extreme=True, y_scale=y_scale).assert_agrees(
            level
        )


@pytest.mark.parametrize("y_scale", [1e-9, 1e-7, 1e-3, 1.0, 1e6])
def test_large_and_tiny_multipliers(y_scale: float) -> None:
    dense((3, 8), 17, y_scale=y_scale).assert_agrees()
    if y_scale >= 1e-3:  # else what leaves 32 bits may wrap
        dense((3, 8), 17, bias="INT32", y_scale=y_scale).assert_agrees()
    conv((1, 3, 3, 8), 17, y_scale=y_scale).assert_agrees()


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_share_the_work(threads: int) -> None:
    conv((1, 40, 40, 32), 48).assert_agrees(threads=threads)
    depthwise((1, 60, 60, 64), 64).assert_agrees(threads=threads)
    dense((300, 200), 100).assert_agrees(threads=threads)


def test_sums_that_may_leave_32_bits_are_refused() -> None:
    refused = dense((1, 600), 4, bias="INT32", is_extreme=True).refusal()
    assert "sums of 31 bits" in str(refused)


def test_groups_and_several_outputs_a_channel_are_refused() -> None:
    assert "groups: is 2" in str(conv((1, 4, 4, 8), 8, groups=2).refusal())
    assert "multiplier: is 3" in str(depthwise((1, 4, 4, 2), 6).refusal())
    assert "taps" in str(depthwise((1, 20, 20, 2), 2, (17, 16)).refusal())


@levels
@pytest.mark.parametrize("op", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_other_channels_after_a_resize_are_computed(op: str, level: str) -> None:
    options: Any = Conv2DOptions(stride_w=1, stride_h=1)
    shape = (8, 3, 3, 4)
    if op == "DEPTHWISE_CONV_2D":
        options = DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=1)
        shape = (1, 3, 3, 8)
    node = Node(op, (1, 5, 5, shape[3]), shape, options)
    theirs, ours = Interpreter(model_content=node.model), delegated(node.model, level)
    assert ours.placement.nodes[0].delegate == "numba_cpu"
    for channels in (8, 4, 16) if op == "CONV_2D" else (8, 4, 2, 1, 8):
        x = np.random.default_rng(channels).integers(-32768, 32768, (1, 5, 5, channels), np.int16)
        np.testing.assert_array_equal(run(ours, x), run(theirs, x))


def test_channels_that_make_no_groups_are_rejected() -> None:
    node = Node("CONV_2D", (1, 5, 5, 9), (8, 3, 3, 3), Conv2DOptions(stride_w=1, stride_h=1))
    with pytest.raises(ModelError) as right:
        node.results()
    with pytest.raises(ModelError) as mine:
        node.results(delegate())
    assert str(mine.value) == str(right.value)
