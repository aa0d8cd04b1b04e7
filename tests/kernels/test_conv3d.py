"""CONV_3D and CONV_3D_TRANSPOSE."""

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


OP = "CONV_3D_TRANSPOSE"
# input, filter, output, stride and dilation of each axis, padding
CASES = {
    "one position": ((1, 1, 1, 1, 2), (2, 2, 2, 3, 2), (1, 2, 2, 2, 3), 1, 1, Padding.VALID),
    "overlapping": ((2, 2, 3, 4, 2), (2, 3, 2, 3, 2), (2, 3, 5, 5, 3), 1, 1, Padding.VALID),
    "same": ((1, 3, 4, 5, 2), (3, 3, 3, 4, 2), (1, 3, 4, 5, 4), 1, 1, Padding.SAME),
    "strided": ((1, 2, 3, 2, 2), (3, 2, 3, 2, 2), (1, 4, 6, 4, 2), 2, 1, Padding.SAME),
    "strided with gaps": ((1, 2, 2, 2, 1), (1, 1, 1, 1, 1), (1, 4, 4, 4, 1), 3, 1, Padding.VALID),
    "dilated": ((1, 2, 2, 2, 2), (2, 2, 2, 1, 2), (1, 4, 4, 4, 1), 1, 2, Padding.VALID),
    "dilated, same": ((1, 4, 4, 4, 2), (3, 2, 2, 1, 2), (1, 4, 4, 4, 1), 1, 2, Padding.SAME),
}


def geometry_options(stride, dilation, padding, act=Act.NONE):
    return options((stride,) * 3, (dilation,) * 3, padding, act)


def operands(shape, kernel, output, *, shape_as=constant):
    rng = np.random.default_rng(0)
    x, weight = (rng.normal(size=s).astype(np.float32) for s in (shape, kernel))
    return [shape_as(np.array(output, np.int32)), constant(weight), fed(x)]


@pytest.mark.parametrize("shape_as", [constant, fed])
@pytest.mark.parametrize("case", CASES)
def test_transposed_results_are_the_official_ones(case, shape_as):
    shape, kernel, output, *geometry = CASES[case]
    inputs = operands(shape, kernel, output, shape_as=shape_as)
    assert_agrees(OP, inputs, ["FLOAT32"], geometry_options(*geometry), tolerance=1e-5)


@pytest.mark.parametrize("activation", [Act.NONE, Act.RELU, Act.RELU6])
@pytest.mark.parametrize("given", [constant, fed])
def test_bias_and_activation_are_applied(given, activation):
    shape, kernel, output, *geometry = CASES["overlapping"]
    bias = given(np.float32([1, -2, 30]))
    inputs = [*operands(shape, kernel, output), bias]
    assert_agrees(OP, inputs, ["FLOAT32"], geometry_options(*geometry, activation), tolerance=1e-5)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ((1, 3, 2, 2, 3), r"an input of \[2, 1, 1\] positions"),
        ((2, 2, 2, 2, 3), "expected 1 batches and 3 channels"),
        ((1, -2, 2, 2, 3), "expected 1 batches and 3 channels"),
    ],
)
def test_output_shapes_that_do_not_fit_are_refused(output, message):
    shape, kernel, _, *geometry = CASES["one position"]
    inputs = operands(shape, kernel, output)
    assert_both_refuse(OP, inputs, ["FLOAT32"], geometry_options(*geometry), match=message)


def test_a_bias_of_another_length_is_refused():
    shape, kernel, output, *geometry = CASES["one position"]
    inputs = [*operands(shape, kernel, output), constant(np.float32([1, 2]))]
    message = r"bias is \[2\], expected \[3\]"
    assert_both_refuse(OP, inputs, ["FLOAT32"], geometry_options(*geometry), match=message)
