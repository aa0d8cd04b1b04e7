"""Operators of a partition in the simple form that engines compute one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from delegraph import Interpreter, PartitionModel
from delegraph.delegation import EngineOperator
from delegraph.schema.enums import ActivationFunctionType as Activation
from delegraph.schema.enums import Padding, TensorType
from delegraph.schema.options import (
    AddOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    Pool2DOptions,
    SoftmaxOptions,
)
from delegraph.testing import constant, graph_model, one_op_model, tensor


def operators(content: bytes, layout: Any = "NHWC") -> list[EngineOperator]:
    return PartitionModel(content, (), (), (), ()).operators(layout)


def numbers(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


STRIDED = Conv2DOptions(stride_w=1, stride_h=2, fused_activation_function=Activation.RELU6)
DEPTHWISE = DepthwiseConv2DOptions(
    stride_w=1, stride_h=1, depth_multiplier=1, dilation_w_factor=2, dilation_h_factor=1
)
POOL = Pool2DOptions(stride_w=3, stride_h=2, filter_width=3, filter_height=2, padding=Padding.VALID)
NETWORK = graph_model(
    [
        ("CONV_2D", "x full bias", "a", STRIDED),
        ("DEPTHWISE_CONV_2D", "a deep bias", "b", DEPTHWISE),
        ("ADD", "a b", "c", AddOptions()),
        ("MAX_POOL_2D", "c", "y", POOL),
    ],
    inputs="x",
    outputs="y",
    tensors={
        "x": tensor((1, 7, 6, 2)),
        "full": constant(numbers(3, 2, 3, 2)),
        "bias": constant(numbers(3)),
        "deep": constant(numbers(1, 3, 2, 3)),
        **dict.fromkeys("abc", tensor((1, 4, 6, 3))),
        "y": tensor((1, 2, 2, 3)),
    },
)
"""Windows that are not square, an odd zero after the image, strides, dilation, RELU6."""


def computed(content: bytes, x: NDArray[np.float32], layout: str) -> NDArray[np.float32]:
    """The only output of a model by its simple operators, each from its definition."""
    values: dict[str, Any] = {}
    for operator in operators(content, layout):
        inputs = [t.array() if t.is_constant else values.get(t.name, x) for t in operator.inputs]
        result = COMPUTE[operator.name](operator, layout, *inputs)
        (output,) = operator.outputs
        assert result.shape == output.shape, operator
        values[output.name] = result
    return values[output.name]


def windowed(
    operator: EngineOperator, layout: str, x: Any, weights: Any = None, bias: Any = 0
) -> Any:
    """A convolution or a pool, window by window, in NCHW."""
    if layout == "NHWC":
        x = x.transpose(0, 3, 1, 2)
        if weights is not None:
            axes = (3, 0, 1, 2) if operator.name.startswith("DEPTH") else (0, 3, 1, 2)
            weights = weights.transpose(axes)
    down, across = operator.windows
    fill = -np.inf if weights is None else 0
    edges = [(0, 0), (0, 0), (down.before, down.after), (across.before, across.after)]
    x = np.pad(x, edges, constant_values=fill)
    y = np.zeros((1, x.shape[1] if weights is None else len(weights), down.output, across.output))
    for o, i, j in np.ndindex(y.shape[1:]):
        rows = slice(i * down.stride, i * down.stride + down.span, down.dilation)
        columns = slice(j * across.stride, j * across.stride + across.span, across.dilation)
        if weights is None:
            y[0, o, i, j] = x[0, o, rows, columns].max()
        else:
            depth = weights.shape[1]
            first = o // (len(weights) // operator.groups) * depth
            y[0, o, i, j] = (x[0, first : first + depth, rows, columns] * weights[o]).sum() + bias[
                o
            ]
    return y if layout == "NCHW" else y.transpose(0, 2, 3, 1)


COMPUTE: dict[str, Any] = {
    "ADD": lambda operator, layout, a, b: a + b,
    "CONV_2D": windowed,
    "DEPTHWISE_CONV_2D": windowed,
    "FULLY_CONNECTED": lambda operator, layout, x, weights: x @ weights.T,
    "MAX_POOL_2D": windowed,
    "MUL": lambda operator, layout, a, b: a * b,
    "RELU6": lambda operator, layout, x: np.clip(x, 0, 6),
    "RESHAPE": lambda operator, layout, x, shape: x.reshape(shape),
    "SOFTMAX": lambda operator, layout, x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
    "TRANSPOSE": lambda operator, layout, x, axes: x.transpose(axes),
}


def expected(content: bytes, x: NDArray[np.float32]) -> NDArray[np.float32]:
    with Interpreter(model_content=content, delegates=[]) as interpreter:
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
        interpreter.invoke()
        return np.array(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))


def names(content: bytes, layout: Any = "NHWC") -> Sequence[str]:
    return [operator.name for operator in operators(content, layout)]


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_windows_weights_and_groups_say_what_a_network_computes(layout: str) -> None:
    x = 3 * numbers(1, 7, 6, 2)
    assert_allclose(computed(NETWORK, x, layout), expected(NETWORK, x), rtol=1e-5, atol=1e-5)


def test_the_layout_changes_at_the_ends_only() -> None:
    """Activations and sums compute in the layout of the convolutions around them."""
    inner = ["CONV_2D", "RELU6", "DEPTHWISE_CONV_2D", "ADD", "MAX_POOL_2D"]
    assert names(NETWORK) == inner
    assert names(NETWORK, "NCHW") == ["TRANSPOSE", *inner, "TRANSPOSE"]


def test_other_operators_keep_the_layout() -> None:
    content = graph_model(
        [("MAX_POOL_2D", "x", "a", POOL), ("SOFTMAX", "a", "y", SoftmaxOptions(beta=1.0))],
        inputs="x",
        outputs="a y",
        tensors={"x": tensor((1, 4, 6, 2)), **dict.fromkeys("ay", tensor((1, 2, 2, 2)))},
    )
    assert names(content, "NCHW") == ["TRANSPOSE", "MAX_POOL_2D", "TRANSPOSE", "SOFTMAX"]


def test_a_sum_with_repeated_values_keeps_the_layout() -> None:
    """In NCHW, other axes would be repeated."""
    content = graph_model(
        [("MAX_POOL_2D", "x", "a", POOL), ("ADD", "a bias", "y", AddOptions())],
        inputs="x",
        outputs="y",
        tensors={
            "x": tensor((1, 4, 6, 2)),
            "bias": constant(numbers(2)),
            **dict.fromkeys("ay", tensor((1, 2, 2, 2))),
        },
    )
    x = numbers(1, 4, 6, 2)
    assert_allclose(computed(content, x, "NCHW"), expected(content, x), rtol=1e-6)


def test_scales_of_channels_move_with_their_axis() -> None:
    weights = constant(np.ones((1, 2, 2, 3), np.int8), scale=[0.5, 1, 2], axis=3)
    images = [tensor((1, 4, 4, 3), "INT8", scale=1.0) for _ in range(2)]
    content = one_op_model("DEPTHWISE_CONV_2D", [images[0], weights], images[1:], DEPTHWISE)
    moved = operators(content, "NCHW")[1].inputs[1]
    assert moved.shape == (3, 1, 2, 2)
    assert moved.quantization is not None
    assert moved.quantization.quantized_dimension == 0


def test_computed_and_packed_weights_are_transposed_while_running() -> None:
    image, result = tensor((1, 4, 4, 2)), tensor((1, 2, 4, 1))
    content = one_op_model("CONV_2D", [image, tensor((1, 2, 2, 2))], [result], STRIDED)
    assert names(content, "NCHW").count("TRANSPOSE") == 3
    packed = constant(np.ones((1, 2, 2, 2), np.int8), "INT4", scale=1.0)
    content = one_op_model("CONV_2D", [image, packed], [result], STRIDED)
    assert names(content, "NCHW").count("TRANSPOSE") == 3


def test_products_are_of_matrices() -> None:
    content = one_op_model(
        "FULLY_CONNECTED",
        [tensor((2, 3, 4)), constant(numbers(5, 4)), None],
        [tensor((2, 3, 5))],
        FullyConnectedOptions(keep_num_dims=True, fused_activation_function=Activation.RELU6),
    )
    assert names(content) == ["RESHAPE", "FULLY_CONNECTED", "RESHAPE", "RELU6"]
    x = numbers(2, 3, 4)
    assert_allclose(computed(content, x, "NHWC"), expected(content, x), rtol=1e-5, atol=1e-6)


def test_a_product_of_matrices_stays_one_operator() -> None:
    operands = [tensor((2, 4)), constant(numbers(5, 4))]
    content = one_op_model("FULLY_CONNECTED", operands, [tensor((2, 5))], FullyConnectedOptions())
    assert names(content) == ["FULLY_CONNECTED"]


def test_the_factor_of_softmax_is_a_product() -> None:
    content = one_op_model("SOFTMAX", [tensor((2, 3))], [tensor((2, 3))], SoftmaxOptions(beta=2.0))
    assert names(content) == ["MUL", "SOFTMAX"]
    x = numbers(2, 3)
    assert_allclose(computed(content, x, "NHWC"), expected(content, x), rtol=1e-5)


def test_a_reshape_has_the_shape_of_its_output() -> None:
    """The file may have it in its options, or with a length of -1."""
    content = one_op_model("RESHAPE", [tensor((2, 3)), constant(np.int32([-1]))], [tensor((6,))])
    (reshape,) = operators(content)
    assert_array_equal(reshape.inputs[1].array(), [6])


def test_an_absent_input_has_no_name() -> None:
    gates = [None if i in (1, 2) else tensor((1, 1)) for i in range(4)]
    (operator,) = operators(one_op_model("SVDF", [*gates, None], [tensor((1, 1))]))
    assert [bool(x.name) for x in operator.inputs] == [True, False, False, True]


def test_an_activation_inside_of_an_operator_stays() -> None:
    """That of an SVDF or RNN is not applied to a result alone."""
    from delegraph.schema.options import RNNOptions

    options = RNNOptions(fused_activation_function=Activation.RELU)
    content = one_op_model("RNN", [tensor((1, 1))] * 5, [tensor((1, 1))], options)
    (operator,) = operators(content)
    assert operator.options.fused_activation_function == Activation.RELU


def test_names_of_new_tensors_are_new() -> None:
    tensors = [tensor((1, 4, 6, 2), name="x"), tensor((1, 2, 2, 2), name="x/planes")]
    made = operators(one_op_model("MAX_POOL_2D", tensors[:1], tensors[1:], POOL), "NCHW")
    outputs = [operator.outputs[0].name for operator in made]
    assert len({"x", *outputs}) == 1 + len(outputs)
    assert outputs[-1] == "x/planes"
    assert made[0].inputs[1].type == TensorType.INT32
