"""CONV_2D."""

import numpy as np
import pytest

from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.enums import Padding, TensorType
from delegraph.schema.options import Conv2DOptions
from delegraph.testing import constant, delegraph_outputs, fed, one_op_model, operator_case, tensor
from support.agreement import assert_agrees, assert_both_refuse
from support.convolutions import KINDS, TOLERANCE, assert_kind_agrees, operands, window


def options(kind="float", **given):
    bias = TensorType.INT32 if kind == "int16-int32-bias" else TensorType.FLOAT32
    return Conv2DOptions(quantized_bias_type=bias, **window(**given))


def assert_conv_agrees(kind, x_shape, weight_shape, seed=0, **given):
    case = operands(kind, x_shape, weight_shape, seed=seed)
    inputs = [case.x, case.weight, case.bias]
    return assert_kind_agrees("CONV_2D", inputs, case.y, options(kind, **given), version=6)


@pytest.mark.parametrize("kind", KINDS)
def test_pointwise(kind):
    assert_conv_agrees(kind, (2, 24, 24, 8), (24, 1, 1, 8))


@pytest.mark.parametrize("kind", KINDS)
def test_windows_with_border_and_strides(kind):
    assert_conv_agrees(kind, (1, 33, 30, 5), (17, 3, 4, 5), stride=(2, 1))


@pytest.mark.parametrize("kind", KINDS)
def test_dilation(kind):
    assert_conv_agrees(kind, (1, 20, 21, 4), (9, 3, 2, 4), dilation=(2, 3))


@pytest.mark.parametrize("kind", KINDS)
def test_whole_windows_only(kind):
    y = assert_conv_agrees(kind, (1, 20, 21, 4), (9, 5, 4, 4), padding=Padding.VALID)
    assert y.shape == (1, 16, 18, 9)


@pytest.mark.parametrize("act", [Act.RELU, Act.RELU6, Act.RELU_N1_TO_1])
@pytest.mark.parametrize("kind", KINDS)
def test_fused_activation(kind, act):
    assert_conv_agrees(kind, (1, 12, 12, 3), (8, 3, 3, 3), act=act)


@pytest.mark.parametrize(
    "kind", ["float", "uint8", "int8-channels", "int16-int64-bias", "hybrid-channels"]
)
def test_groups_round_like_the_reference_kernel(kind):
    assert_conv_agrees(kind, (1, 32, 32, 12), (24, 3, 3, 4))


def test_activations_are_quantised_as_vector_code_does():
    # With this seed the scale's last bit decides how one of the activations is rounded.
    given = {"stride": (1, 3), "dilation": (2, 1), "padding": Padding.VALID, "act": Act.RELU6}
    assert_conv_agrees("hybrid-channels", (3, 20, 29, 13), (6, 5, 4, 13), seed=213, **given)


@pytest.mark.parametrize("kind", ["float", "int8-channels"])
@pytest.mark.parametrize("x_shape", [(1, 1, 700, 3), (1, 700, 1, 3), (3, 1, 1, 16)])
def test_images_of_one_row_or_column(kind, x_shape):
    assert_conv_agrees(kind, x_shape, (10, 1, 5, x_shape[3]))


def test_tiles_follow_each_other():
    # 300 * 300 windows of 27 values are far more than a tile holds.
    assert_conv_agrees("int8-channels", (1, 300, 300, 3), (4, 3, 3, 3))


@pytest.mark.parametrize("kind", ["int8-channels", "uint8"])
def test_long_sums_stay_exact(kind):
    # 9216 products of bytes leave float32's 24 bits.
    assert_conv_agrees(kind, (1, 4, 4, 1024), (16, 3, 3, 1024))


@pytest.mark.parametrize("scale", [2.0**-22, 1.0, 90.0])
def test_unusual_multipliers(scale):
    case = operands("int8", (1, 16, 16, 4), (8, 1, 1, 4))
    unusual = tensor((), "INT8", scale=scale, zero_point=5)
    inputs = [case.x, case.weight, case.bias]
    assert_agrees("CONV_2D", inputs, [unusual], options(), version=6)


def test_a_window_larger_than_the_image_gives_nothing():
    x, weight = np.zeros((1, 2, 2, 1), np.float32), np.zeros((1, 3, 3, 1), np.float32)
    y = tensor((), "FLOAT32")
    inputs = [tensor(x.shape), constant(weight), constant(np.zeros(1, np.float32))]
    model = one_op_model("CONV_2D", inputs, [y], options(padding=Padding.VALID))
    assert delegraph_outputs(model, [x])[0].size == 0


def test_a_window_two_strides_larger_than_the_image_is_refused():
    inputs = [fed(np.zeros((1, 2, 1, 1), np.float32))]
    inputs += [constant(np.zeros(s, np.float32)) for s in [(1, 3, 3, 1), (1,)]]
    given = options(padding=Padding.VALID)
    assert_both_refuse("CONV_2D", inputs, ["FLOAT32"], given, match="windows of 3 are too large")


def test_groups_of_hybrid_weights_with_one_scale_are_refused():
    case = operands("hybrid", (1, 8, 8, 4), (6, 3, 3, 2))
    inputs = [case.x, case.weight, case.bias]
    assert_both_refuse("CONV_2D", inputs, [case.y], options(), match="1 scales, expected 6")


@pytest.mark.parametrize("give", [constant, fed])
def test_weights_of_float16_are_widened(give):
    rng = np.random.default_rng(1)
    x, bias = rng.normal(size=(2, 6, 5, 3)).astype("f4"), rng.normal(size=4).astype("f4")
    weight = rng.normal(size=(4, 3, 3, 3)).astype(np.float16)
    options = Conv2DOptions(stride_w=1, stride_h=1, fused_activation_function=Act.RELU)
    results = []
    for w in (weight, weight.astype(np.float32)):
        case = operator_case("CONV_2D", [fed(x), give(w), constant(bias)], ["FLOAT32"], options)
        results += delegraph_outputs(case.model(), case.steps[0])
    np.testing.assert_array_equal(*results)


def test_the_type_of_a_bias_need_not_be_named():
    rng = np.random.default_rng(1)
    x = fed(rng.integers(-99, 99, (1, 4, 4, 3)).astype(np.int16), scale=0.01)
    weight = rng.integers(-99, 99, (2, 2, 2, 3)).astype(np.int8)
    weight = constant(weight, scale=[0.5, 0.25], zero_point=[0, 0])
    bias = constant(np.int32([700, -90]), scale=[5e-3, 2.5e-3], zero_point=[0, 0])
    results = []
    for type in (TensorType.INT32, TensorType.FLOAT32):  # FLOAT32 is what no name reads as
        given = Conv2DOptions(stride_w=1, stride_h=1, quantized_bias_type=type)
        y = tensor((), "INT16", scale=0.05)
        case = operator_case("CONV_2D", [x, weight, bias], [y], given)
        results += delegraph_outputs(case.model(), case.steps[0])
    np.testing.assert_array_equal(*results)


def test_weights_that_are_computed():
    rng = np.random.default_rng(1)
    x, weight = (rng.standard_normal(s).astype("f4") for s in [(1, 9, 9, 4), (6, 3, 3, 4)])
    inputs = [fed(x), fed(weight), constant(np.ones(6, np.float32))]
    assert_agrees("CONV_2D", inputs, ["FLOAT32"], options(), tolerance=TOLERANCE)


def test_quantized_weights_that_are_computed():
    case = operands("int8", (1, 9, 9, 4), (6, 3, 3, 4))
    rng = np.random.default_rng(1)
    weight = fed(rng.integers(-127, 128, (6, 3, 3, 4)).astype("i1"), scale=0.0151)
    assert_agrees("CONV_2D", [case.x, weight, case.bias], [case.y], options(), version=6)


def refusal(x=(1, 8, 8, 4), weight=(2, 3, 3, 4), bias=(2,), bias_type="f4", y="FLOAT32", **given):
    return (
        "CONV_2D",
        [
            fed(np.zeros(x, "f4")),
            constant(np.zeros(weight, "f4")),
            constant(np.zeros(bias, bias_type)),
        ],
        [y],
        options(**given),
    )


@pytest.mark.parametrize(
    ("case", "match"),
    [
        (refusal(x=(8, 8, 4)), "4 dimensions"),
        (refusal(weight=(2, 3, 4)), "4 dimensions"),
        (refusal(weight=(2, 3, 3, 3)), "multiple of the filter's 3"),
        (refusal(bias=(3,)), "one value for each of 2 filters"),
        (refusal(bias_type="i4"), "INT32, expected one of FLOAT32"),
        (refusal(y="INT8"), "INT8"),
        (refusal(stride=(0, 1)), "stride is 0"),
        (refusal(dilation=(1, 0)), "dilation is 0"),
    ],
)
def test_refused_by_both(case, match):
    assert_both_refuse(*case, match=match)


def test_a_missing_bias_is_refused():
    inputs = [fed(np.zeros((1, 4, 4, 1), "f4")), constant(np.zeros((1, 1, 1, 1), "f4"))]
    assert_both_refuse("CONV_2D", [*inputs, None], ["FLOAT32"], options(), match="absent")
    assert_both_refuse("CONV_2D", inputs, ["FLOAT32"], options(), match="2 inputs")


def test_zero_points_of_signed_weights_are_refused():
    case = operands("int8", (1, 4, 4, 2), (3, 1, 1, 2))
    weight = constant(np.zeros((3, 1, 1, 2), "i1"), scale=0.1, zero_point=4)
    inputs = [case.x, weight, case.bias]
    assert_both_refuse(
        "CONV_2D", inputs, [case.y], options(), match=r"\[4\], expected 0", version=3
    )


def test_no_filters_are_refused():
    inputs = [fed(np.zeros((1, 4, 4, 2), "f4")), constant(np.zeros((0, 1, 1, 2), "f4"))]
    bias = constant(np.zeros(0, "f4"))
    assert_both_refuse("CONV_2D", [*inputs, bias], ["FLOAT32"], options(), match="0 filters")
