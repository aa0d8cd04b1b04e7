"""CONV_3D_TRANSPOSE, against the official interpreter."""

import numpy as np
import pytest

from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.enums import Padding
from delegraph.schema.options import Conv3DOptions
from delegraph.testing import constant, fed
from support.agreement import assert_agrees, assert_both_refuse

OP = "CONV_3D_TRANSPOSE"
# input, filter, output, strides, dilations, padding
CASES = {
    "one position": ((1, 1, 1, 1, 2), (2, 2, 2, 3, 2), (1, 2, 2, 2, 3), 1, 1, Padding.VALID),
    "overlapping": ((2, 2, 3, 4, 2), (2, 3, 2, 3, 2), (2, 3, 5, 5, 3), 1, 1, Padding.VALID),
    "same": ((1, 3, 4, 5, 2), (3, 3, 3, 4, 2), (1, 3, 4, 5, 4), 1, 1, Padding.SAME),
    "strided": ((1, 2, 3, 2, 2), (3, 2, 3, 2, 2), (1, 4, 6, 4, 2), 2, 1, Padding.SAME),
    "strided with gaps": ((1, 2, 2, 2, 1), (1, 1, 1, 1, 1), (1, 4, 4, 4, 1), 3, 1, Padding.VALID),
    "dilated": ((1, 2, 2, 2, 2), (2, 2, 2, 1, 2), (1, 4, 4, 4, 1), 1, 2, Padding.VALID),
    "dilated, same": ((1, 4, 4, 4, 2), (3, 2, 2, 1, 2), (1, 4, 4, 4, 1), 1, 2, Padding.SAME),
}


def options(stride, dilation, padding, activation=Act.NONE):
    return Conv3DOptions(
        padding=padding,
        fused_activation_function=activation,
        stride_d=stride,
        stride_h=stride,
        stride_w=stride,
        dilation_d_factor=dilation,
        dilation_h_factor=dilation,
        dilation_w_factor=dilation,
    )


def operands(shape, kernel, output, *, shape_as=constant):
    rng = np.random.default_rng(0)
    x, weight = (rng.normal(size=s).astype(np.float32) for s in (shape, kernel))
    return [shape_as(np.array(output, np.int32)), constant(weight), fed(x)]


@pytest.mark.parametrize("shape_as", [constant, fed])
@pytest.mark.parametrize("case", CASES)
def test_results_are_the_official_ones(case, shape_as):
    shape, kernel, output, *geometry = CASES[case]
    inputs = operands(shape, kernel, output, shape_as=shape_as)
    assert_agrees(OP, inputs, ["FLOAT32"], options(*geometry), tolerance=1e-5)


@pytest.mark.parametrize("activation", [Act.NONE, Act.RELU, Act.RELU6])
@pytest.mark.parametrize("given", [constant, fed])
def test_bias_and_activation_are_applied(given, activation):
    shape, kernel, output, *geometry = CASES["overlapping"]
    bias = given(np.float32([1, -2, 30]))
    inputs = [*operands(shape, kernel, output), bias]
    assert_agrees(OP, inputs, ["FLOAT32"], options(*geometry, activation), tolerance=1e-5)


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
    assert_both_refuse(OP, inputs, ["FLOAT32"], options(*geometry), match=message)


def test_a_bias_of_another_length_is_refused():
    shape, kernel, output, *geometry = CASES["one position"]
    inputs = [*operands(shape, kernel, output), constant(np.float32([1, 2]))]
    message = r"bias is \[2\], expected \[3\]"
    assert_both_refuse(OP, inputs, ["FLOAT32"], options(*geometry), match=message)
