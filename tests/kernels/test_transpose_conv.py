"""TRANSPOSE_CONV."""

import numpy as np
import pytest

from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.enums import Padding, TensorType
from delegraph.schema.options import TransposeConvOptions
from delegraph.testing import constant, fed
from support.agreement import assert_both_refuse
from support.convolutions import KINDS, assert_kind_agrees, operands, window

KINDS = [name for name in KINDS if "int4" not in name]


def options(kind="float", **given):
    bias = TensorType.INT32 if kind == "int16-int32-bias" else TensorType.FLOAT32
    return TransposeConvOptions(quantized_bias_type=bias, **window(dilation=None, **given))


def assert_transpose_agrees(
    kind, x_shape, weight_shape, y_shape, *, given=constant, bias=True, taps=0, seed=0, **chosen
):
    case = operands(kind, x_shape, weight_shape, taps=taps or 4 * x_shape[3], seed=seed)
    inputs = [given(np.array(y_shape, np.int32)), case.weight, case.x, case.bias][: 3 + bias]
    return assert_kind_agrees("TRANSPOSE_CONV", inputs, case.y, options(kind, **chosen), version=4)


@pytest.mark.parametrize("kind", KINDS)
def test_same_padding_with_strides(kind):
    assert_transpose_agrees(kind, (2, 9, 8, 6), (13, 3, 4, 6), (2, 18, 24, 13), stride=(2, 3))


@pytest.mark.parametrize("kind", KINDS)
def test_valid_padding(kind):
    shapes = (1, 9, 8, 6), (5, 4, 3, 6), (1, 20, 10, 5)
    assert_transpose_agrees(kind, *shapes, stride=(2, 1), padding=Padding.VALID)


@pytest.mark.parametrize("kind", ["float", "int8-channels"])
@pytest.mark.parametrize("size", [(19, 19), (20, 18), (19, 18)])
def test_the_output_may_be_larger_than_what_is_reached(kind, size):
    shapes = (1, 9, 9, 4), (3, 3, 2, 4), (1, *size, 3)
    assert_transpose_agrees(kind, *shapes, stride=(2, 2), padding=Padding.VALID)


@pytest.mark.parametrize("kind", KINDS)
def test_values_beyond_the_last_vector_round_differently(kind):
    for channels in (3, 8, 20):
        shapes = (1, 31, 33, 8), (channels, 1, 1, 8), (1, 31, 33, channels)
        assert_transpose_agrees(kind, *shapes)


@pytest.mark.parametrize("seed", [10, 93, 108, 133])
def test_the_last_uint8_values_round_differently(seed):
    # With these seeds one of the 15 values, too few for a vector, has a half to round.
    shapes = (1, 1, 3, 5), (5, 1, 1, 5), (1, 1, 3, 5)
    assert_transpose_agrees("uint8", *shapes, seed=seed, taps=5)


@pytest.mark.parametrize("seed", range(4))
def test_the_last_uint8_values_may_be_those_of_several_images(seed):
    shapes = (5, 1, 3, 5), (1, 1, 1, 5), (5, 1, 3, 1)
    assert_transpose_agrees("uint8", *shapes, seed=seed, taps=5)


@pytest.mark.parametrize("kind", KINDS)
def test_without_bias(kind):
    shapes = (1, 9, 8, 6), (5, 2, 2, 6), (1, 18, 16, 5)
    assert_transpose_agrees(kind, *shapes, stride=(2, 2), bias=False)


@pytest.mark.parametrize("kind", ["float", "int8-channels", "uint8"])
@pytest.mark.parametrize("act", [Act.RELU, Act.RELU6])
def test_fused_activation(kind, act):
    shapes = (1, 9, 8, 6), (5, 2, 2, 6), (1, 18, 16, 5)
    assert_transpose_agrees(kind, *shapes, stride=(2, 2), act=act)


@pytest.mark.parametrize("kind", KINDS)
def test_a_shape_known_at_run_time(kind):
    shapes = (1, 9, 8, 6), (5, 2, 2, 6), (1, 18, 16, 5)
    y = assert_transpose_agrees(kind, *shapes, stride=(2, 2), given=fed)
    assert y.shape == (1, 18, 16, 5)


def refusal(shape=(1, 8, 8, 3), x=(1, 4, 4, 2), weight=(3, 2, 2, 2), y="FLOAT32", **given):
    inputs = [constant(np.array(shape, "i4")), constant(np.zeros(weight, "f4"))]
    inputs.append(fed(np.zeros(x, "f4")))
    return ("TRANSPOSE_CONV", inputs, [y], options(**given))


@pytest.mark.parametrize(
    ("case", "match"),
    [
        (refusal(x=(4, 4, 2)), r"\[N, H, W, C\]"),
        (refusal(weight=(3, 2, 2, 3)), "2 channels, expected 3"),
        (refusal(shape=(1, 8, 8)), "output shape"),
        (refusal(shape=(2, 8, 8, 3)), "output shape"),
        (refusal(shape=(1, 8, 9, 3), stride=(2, 2)), "gives 4 x 5 positions"),
        (refusal(y="INT8"), "INT8"),
        (refusal(stride=(0, 1)), "stride is 0"),
    ],
)
def test_refused_by_both(case, match):
    assert_both_refuse(*case, match=match)


@pytest.mark.parametrize(("channels", "outputs"), [(2, 0), (0, 2)])
def test_no_channels_are_refused(channels, outputs):
    inputs = [
        constant(np.array([1, 4, 4, outputs], np.int32)),
        constant(np.zeros((outputs, 1, 1, channels), "f4")),
        fed(np.zeros((1, 4, 4, channels), "f4")),
    ]
    assert_both_refuse("TRANSPOSE_CONV", inputs, ["FLOAT32"], options(), match="at least one of")
