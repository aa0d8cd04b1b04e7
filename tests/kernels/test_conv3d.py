"""CONV_3D."""

import numpy as np
import pytest

from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.enums import Padding
from delegraph.schema.options import Conv3DOptions
from delegraph.testing import constant, fed
from support.agreement import assert_agrees, assert_both_refuse

FLOAT_TOLERANCE = 1e-5


def options(stride=(1, 1, 1), dilation=(1, 1, 1), padding=Padding.SAME, act=Act.NONE):
    return Conv3DOptions(
        padding=padding,
        stride_d=stride[0],
        stride_h=stride[1],
        stride_w=stride[2],
        dilation_d_factor=dilation[0],
        dilation_h_factor=dilation[1],
        dilation_w_factor=dilation[2],
        fused_activation_function=act,
    )


@pytest.mark.parametrize("padding", [Padding.SAME, Padding.VALID])
@pytest.mark.parametrize(
    "given", [{}, {"stride": (1, 2, 3)}, {"dilation": (2, 1, 3)}, {"act": Act.RELU}]
)
@pytest.mark.parametrize("bias", [False, True])
def test_boxes(given, padding, bias):
    rng = np.random.default_rng(0)
    shapes = [(2, 7, 8, 9, 3), (2, 3, 2, 3, 4), (4,)]
    x, weight, offset = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    inputs = [fed(x), constant(weight), *([constant(offset)] if bias else [])]
    chosen = options(padding=padding, **given)
    assert_agrees("CONV_3D", inputs, ["FLOAT32"], chosen, tolerance=FLOAT_TOLERANCE)


def refusal(x=(1, 4, 4, 4, 2), weight=(2, 2, 2, 2, 3), bias=(3,), bias_type="f4", **given):
    inputs = [fed(np.zeros(x, "f4")), constant(np.zeros(weight, "f4"))]
    return (
        "CONV_3D", [*inputs, constant(np.zeros(bias, bias_type))], ["FLOAT32"], options(**given)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("case", "match"),
    [
        (refusal(x=(4, 4, 4, 2)), "5 dimensions"),
        (refusal(weight=(2, 2, 2, 3, 3)), "2 channels, expected 3"),
        (refusal(bias=(2,)), r"expected \[3\]"),
        (refusal(weight=(7, 2, 2, 2, 3), padding=Padding.VALID), "windows of 7 are too large"),
        (refusal(bias_type="i4"), "INT32"),
        (refusal(stride=(0, 1, 1)), "stride is 0"),
        (refusal(dilation=(1, 0, 1)), "dilation is 0"),
    ],
)
def test_refused_by_both(case, match):
    assert_both_refuse(*case, match=match)
