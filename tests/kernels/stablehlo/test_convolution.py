"""STABLEHLO_CONVOLUTION, against its definition and the official CONV_2D."""

import itertools

import numpy as np
import pytest

from delegraph.schema.enums import Padding
from delegraph.schema.options import Conv2DOptions, StablehloConvolutionOptions
from delegraph.testing import one_op_model, tensor
from support.official import official_outputs
from support.stablehlo import assert_refused, assert_result, tensor_like


def options(rank=2, *, layouts=None, **given):
    """Return options of layouts ``[N, ..., C]``, ``[..., I, O]``, ``[N, ..., C]``."""
    defaults = {
        "window_strides": (1,) * rank,
        "padding": (0,) * 2 * rank,
        "lhs_dilation": (1,) * rank,
        "rhs_dilation": (1,) * rank,
        "window_reversal": (False,) * rank,
        "input_batch_dimension": 0,
        "input_spatial_dimensions": tuple(range(1, rank + 1)),
        "input_feature_dimension": rank + 1,
        "kernel_spatial_dimensions": tuple(range(rank)),
        "kernel_input_feature_dimension": rank,
        "kernel_output_feature_dimension": rank + 1,
        "output_batch_dimension": 0,
        "output_spatial_dimensions": tuple(range(1, rank + 1)),
        "output_feature_dimension": rank + 1,
        "feature_group_count": 1,
        "batch_group_count": 1,
    }
    return StablehloConvolutionOptions(**(defaults | (layouts or {}) | given))


def definition(x, weight, options):
    """Return the convolution of ``[N, ..., C]`` and ``[..., I, O]``, element by element."""
    rank = weight.ndim - 2
    x, weight = x.astype(np.float64), weight.astype(np.float64)
    groups, batches = options.feature_group_count, options.batch_group_count
    weight = weight[tuple(slice(None, None, -1 if r else 1) for r in options.window_reversal)]
    spread = np.zeros(
        (
            x.shape[0],
            *((n - 1) * d + 1 for n, d in zip(x.shape[1:-1], options.lhs_dilation, strict=True)),
            x.shape[-1],
        )
    )
    spread[(slice(None), *(slice(None, None, d) for d in options.lhs_dilation))] = x
    pads = [(0, 0), *zip(options.padding[::2], options.padding[1::2], strict=True), (0, 0)]
    padded = np.pad(spread, [(max(a, 0), max(b, 0)) for a, b in pads])
    padded = padded[
        tuple(
            slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pads, padded.shape, strict=True)
        )
    ]
    counts = [
        (n - ((k - 1) * d + 1)) // s + 1
        for n, k, d, s in zip(
            padded.shape[1:-1],
            weight.shape[:rank],
            options.rhs_dilation,
            options.window_strides,
            strict=True,
        )
    ]
    depth, outputs = weight.shape[-2:]
    y = np.zeros((x.shape[0] // batches, *counts, outputs))
    for index in np.ndindex(*y.shape):
        n, *place, o = index
        group = o // (outputs // groups) if groups > 1 else 0
        batch = n + o // (outputs // batches) * y.shape[0]
        for tap in itertools.product(*map(range, weight.shape[:rank])):
            at = [
                p * s + t * d
                for p, s, t, d in zip(
                    place, options.window_strides, tap, options.rhs_dilation, strict=True
                )
            ]
            features = padded[(batch, *at)][group * depth : (group + 1) * depth]
            y[index] += features @ weight[(*tap, slice(None), o)]
    return y


CASES = {
    "plain": ((2, 5, 6, 3), (2, 3, 3, 4), {}),
    "strided": ((1, 7, 6, 3), (3, 2, 3, 4), {"window_strides": (2, 3)}),
    "padded": ((1, 4, 4, 2), (3, 3, 2, 3), {"padding": (1, 2, 0, 1)}),
    "cropped": ((1, 6, 6, 2), (2, 2, 2, 3), {"padding": (-1, 0, 1, -2)}),
    "transposed": ((1, 3, 3, 2), (3, 3, 2, 3), {"lhs_dilation": (2, 3), "padding": (2,) * 4}),
    "dilated": ((1, 7, 7, 2), (2, 3, 2, 3), {"rhs_dilation": (3, 2)}),
    "reversed": ((1, 5, 5, 2), (2, 3, 2, 3), {"window_reversal": (True, False)}),
    "feature groups": ((2, 4, 4, 6), (2, 2, 2, 9), {"feature_group_count": 3}),
    "depthwise": ((1, 4, 4, 3), (2, 2, 1, 6), {"feature_group_count": 3}),
    "batch groups": ((4, 4, 4, 3), (2, 2, 3, 6), {"batch_group_count": 2}),
    "one dimension": ((2, 8, 3), (3, 3, 4), {}),
    "three dimensions": ((1, 3, 4, 3, 2), (2, 2, 2, 2, 3), {}),
    "no dimension": ((3, 4), (4, 5), {}),
}


@pytest.mark.parametrize("dtype", ["float32", "int32", "float64"])
@pytest.mark.parametrize("case", CASES)
def test_convolutions_are_as_defined(case, dtype):
    shape, kernel_shape, given = CASES[case]
    rng = np.random.default_rng(0)
    x, weight = (rng.integers(-5, 6, s).astype(dtype) for s in (shape, kernel_shape))
    chosen = options(len(shape) - 2, **given)
    assert_result("CONVOLUTION", [x, weight], definition(x, weight, chosen).astype(dtype), chosen)


@pytest.mark.parametrize(
    ("shape", "kernel_shape", "output"),
    [
        ((0, 4, 4, 3), (3, 3, 3, 4), (0, 2, 2, 4)),
        ((1, 4, 4, 0), (3, 3, 0, 4), (1, 2, 2, 4)),
        ((1, 4, 4, 2), (3, 3, 2, 0), (1, 2, 2, 0)),
        ((1, 2, 2, 3), (3, 3, 3, 4), (1, 0, 0, 4)),
    ],
)
def test_tensors_may_be_empty(shape, kernel_shape, output):
    inputs = [np.ones(shape, np.float32), np.ones(kernel_shape, np.float32)]
    assert_result("CONVOLUTION", inputs, np.zeros(output, np.float32), options())


def test_axes_may_have_any_order():
    rng = np.random.default_rng(0)
    x, weight = (rng.normal(size=s).astype(np.float32) for s in ((2, 5, 6, 3), (2, 3, 3, 4)))
    expected = definition(x, weight, options()).astype(np.float32)
    layouts = {  # [N, C, H, W], [O, I, H, W], [C, H, W, N]
        "input_spatial_dimensions": (2, 3),
        "input_feature_dimension": 1,
        "kernel_spatial_dimensions": (2, 3),
        "kernel_input_feature_dimension": 1,
        "kernel_output_feature_dimension": 0,
        "output_batch_dimension": 3,
        "output_spatial_dimensions": (1, 2),
        "output_feature_dimension": 0,
    }
    inputs = [x.transpose(0, 3, 1, 2), weight.transpose(3, 2, 0, 1)]
    moved = expected.transpose(3, 1, 2, 0)
    assert_result("CONVOLUTION", inputs, moved, options(layouts=layouts), tolerance=1e-5)


def test_the_official_conv_2d_gives_the_same():
    rng = np.random.default_rng(0)
    x, weight = (rng.normal(size=s).astype(np.float32) for s in ((2, 9, 8, 3), (5, 3, 3, 3)))
    conv = Conv2DOptions(padding=Padding.VALID, stride_h=2, stride_w=1)
    operands = [tensor_like(x), tensor_like(weight), tensor((5,))]
    model = one_op_model("CONV_2D", operands, [tensor((2, 4, 6, 5))], conv)
    (expected,) = official_outputs(model, [x, weight, np.zeros(5, np.float32)])
    inputs, chosen = [x, weight.transpose(1, 2, 3, 0)], options(window_strides=(2, 1))
    assert_result("CONVOLUTION", inputs, expected, chosen, tolerance=1e-5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"feature_group_count": 2}, "input has 3 features, expected 2 groups of 3"),
        ({"batch_group_count": 3}, "not divided by 3 groups"),
        ({"output_feature_dimension": 0}, r"output dimensions are \[0, 1, 2, 0\]"),
        ({"window_strides": (0, 1)}, "expected >= 1"),
        ({"padding": (0, 0)}, "expected 4 numbers"),
    ],
)
def test_options_that_do_not_fit_are_refused(given, message):
    inputs = [np.zeros((2, 5, 6, 3), np.float32), np.zeros((2, 3, 3, 4), np.float32)]
    assert_refused("CONVOLUTION", inputs, tensor((2, 4, 4, 4)), options(**given), match=message)
