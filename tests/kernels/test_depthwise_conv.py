"""DEPTHWISE_CONV_2D."""

from dataclasses import replace

import numpy as np
import pytest

from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.enums import Padding
from delegraph.schema.options import DepthwiseConv2DOptions
from delegraph.testing import constant, delegraph_outputs, fed, one_op_model, tensor
from support.agreement import assert_agrees, assert_both_refuse
from support.convolutions import KINDS, TOLERANCE, assert_kind_agrees, operands, window

KINDS = [name for name in KINDS if name not in ("int16-int32-bias", "hybrid", "hybrid-int4")]


def options(stride=(1, 1), multiplier=1, **given):
    return DepthwiseConv2DOptions(depth_multiplier=multiplier, **window(stride, **given))


def assert_depthwise_agrees(kind, x_shape, window, multiplier=1, seed=0, **given):
    weight_shape = (1, *window, x_shape[3] * multiplier)
    case = operands(kind, x_shape, weight_shape, channel_axis=3, seed=seed)
    inputs, chosen = [case.x, case.weight, case.bias], options(multiplier=multiplier, **given)
    return assert_kind_agrees("DEPTHWISE_CONV_2D", inputs, case.y, chosen, version=6)


@pytest.mark.parametrize("shape", [(1, 5, 0, 2), (1, 0, 5, 2), (0, 5, 5, 2)], ids=str)
def test_an_image_without_pixels_gives_none(shape):
    w, bias = constant(np.ones((1, 3, 3, 2), np.float32)), constant(np.ones(2, np.float32))
    x = np.zeros(shape, np.float32)
    content = one_op_model(
        "DEPTHWISE_CONV_2D", [tensor((1, 5, 5, 2)), w, bias], [tensor(())], options((2, 2))
    )
    (y,) = delegraph_outputs(content, [x])
    assert y.size == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (1, 3), (3, 2)])
def test_strides(kind, stride):
    assert_depthwise_agrees(kind, (2, 25, 24, 16), (3, 3), stride=stride)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("channels", [1, 3, 8, 13, 20, 32])
def test_channels_beyond_the_last_eight_round_differently(kind, channels):
    assert_depthwise_agrees(kind, (1, 40, 40, channels), (1, 1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("multiplier", [2, 5])
def test_depth_multiplier(kind, multiplier):
    assert_depthwise_agrees(kind, (1, 17, 19, 5), (3, 2), multiplier, stride=(2, 1))


@pytest.mark.parametrize("kind", ["float", "uint8", "int8-channels", "int16-int64-bias"])
@pytest.mark.parametrize("padding", [Padding.SAME, Padding.VALID])
def test_dilation(kind, padding):
    assert_depthwise_agrees(kind, (1, 24, 23, 8), (3, 3), dilation=(2, 4), padding=padding)


@pytest.mark.parametrize("kind", ["float", "int8-channels"])
def test_dilation_and_stride(kind):
    given = {"dilation": (2, 3), "stride": (2, 2), "padding": Padding.VALID}
    assert_depthwise_agrees(kind, (1, 24, 23, 8), (3, 3), **given)


def test_activations_are_quantised_as_vector_code_does():
    # With this seed an activation rounds differently when the zero point is added first.
    given = {"stride": (2, 3), "dilation": (2, 2), "act": Act.RELU_N1_TO_1}
    assert_depthwise_agrees("hybrid-channels", (3, 17, 21, 75), (3, 4), 2, seed=168, **given)


@pytest.mark.parametrize("act", [Act.RELU, Act.RELU6, Act.RELU_N1_TO_1])
@pytest.mark.parametrize("kind", KINDS)
def test_fused_activation(kind, act):
    assert_depthwise_agrees(kind, (1, 12, 12, 12), (3, 3), act=act)


@pytest.mark.parametrize("kind", KINDS)
def test_without_bias_is_a_bias_of_zeros(kind):
    # The official float kernel crashes without a bias, so there is nothing to compare with.
    case = operands(kind, (1, 8, 8, 9), (1, 3, 3, 9), channel_axis=3)
    zeros = replace(case.bias, data=np.zeros_like(case.bias.data))
    results = []
    for bias in ([], [zeros]):
        inputs = [case.x.definition, case.weight, *bias]
        model = one_op_model("DEPTHWISE_CONV_2D", inputs, [case.y], options(), version=6)
        results += delegraph_outputs(model, [case.x.array])
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("kind", ["float", "int8-channels"])
@pytest.mark.parametrize("x_shape", [(1, 1, 300, 7), (1, 300, 1, 7), (2, 1, 1, 700)])
def test_images_of_one_row_or_column(kind, x_shape):
    assert_depthwise_agrees(kind, x_shape, (5, 5))


def test_rows_are_computed_in_tiles():
    assert_depthwise_agrees("int8-channels", (1, 100, 100, 32), (3, 3))


def test_weights_that_are_computed():
    rng = np.random.default_rng(1)
    weight = fed(rng.standard_normal((1, 3, 3, 4)).astype("f4"))
    x = fed(rng.standard_normal((1, 9, 9, 4)).astype("f4"))
    bias = constant(np.zeros(4, np.float32))
    args = ("DEPTHWISE_CONV_2D", [x, weight, bias], ["FLOAT32"], options())
    assert_agrees(*args, tolerance=TOLERANCE)


def refusal(x=(1, 8, 8, 4), weight=(1, 3, 3, 4), bias=(4,), bias_type="f4", **given):
    inputs = [fed(np.zeros(x, "f4")), constant(np.zeros(weight, "f4"))]
    inputs.append(constant(np.zeros(bias, bias_type)))
    return ("DEPTHWISE_CONV_2D", inputs, ["FLOAT32"], options(**given))


@pytest.mark.parametrize(
    ("case", "match"),
    [
        (refusal(x=(8, 8, 4)), r"expected \[N, H, W, C\]"),
        (refusal(weight=(2, 3, 3, 4)), r"\[1, H, W, O\]"),
        (refusal(weight=(1, 3, 3, 6), bias=(6,)), "multiple of 4 channels"),
        (refusal(bias=(3,)), r"expected \[4\]"),
        (refusal(bias_type="i4"), "INT32"),
        (refusal(stride=(0, 1)), "stride is 0"),
        (refusal(dilation=(1, 0)), "dilation is 0"),
    ],
)
def test_refused_by_both(case, match):
    assert_both_refuse(*case, match=match)


def test_hybrid_weights_need_a_scale_for_each_channel():
    weight = constant(np.ones((1, 3, 3, 4), "i1"), scale=0.5, axis=3)
    inputs = [fed(np.zeros((1, 8, 8, 4), "f4")), weight]
    assert_both_refuse(
        "DEPTHWISE_CONV_2D", inputs, [tensor(())], options(), match="1 scales", version=6
    )


def test_a_bias_that_is_named_must_be_there():
    inputs = [fed(np.zeros((1, 8, 8, 4), "f4")), constant(np.zeros((1, 3, 3, 4), "f4")), None]
    assert_both_refuse("DEPTHWISE_CONV_2D", inputs, ["FLOAT32"], options(), match="absent")


def test_a_filter_without_outputs_is_refused():
    inputs = [fed(np.zeros((1, 4, 4, 3), "f4")), constant(np.zeros((1, 1, 1, 0), "f4"))]
    bias = constant(np.zeros(0, "f4"))
    assert_both_refuse(
        "DEPTHWISE_CONV_2D", [*inputs, bias], ["FLOAT32"], options(), match="has 0 outputs"
    )
