"""SUM, MEAN, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_ANY and REDUCE_ALL."""

import numpy as np
import pytest

from delegraph.schema.options import ReducerOptions
from delegraph.testing import constant, delegraph_outputs, fed, one_op_model, tensor
from support.agreement import assert_agrees, assert_both_refuse, model_and_arrays
from support.official import official_outputs
from support.quantized_pairs import random_floats, random_integers

OPS = ["SUM", "MEAN", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"]
CASES = [
    ((2, 3, 4, 5), (1, 2)),
    ((2, 3, 4, 5), (-1,)),
    ((2, 3, 4, 5), (0, 3)),
    ((7,), (0,)),
    ((3, 50), (0, 1)),
    ((3, 4, 5), (0, 0, -1)),
]
SCALES = {"SUM": (0.02, 0.3), "MEAN": (0.1, 0.037), "REDUCE_PROD": (0.02, 0.02)}


@pytest.mark.parametrize("keep_dims", [False, True])
@pytest.mark.parametrize(("shape", "axes"), CASES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
@pytest.mark.parametrize("op", OPS)
def test_plain_types(op, dtype, shape, axes, keep_dims):
    x = random_floats(1, shape, 3).astype(dtype)
    inputs = [fed(x), constant(np.int32(axes))]
    options = ReducerOptions(keep_dims=keep_dims)
    assert_agrees(op, inputs, [dtype.upper()], options, tolerance=1e-5)


@pytest.mark.parametrize("keep_dims", [False, True])
@pytest.mark.parametrize(("shape", "axes"), [((2, 9, 11, 7), (1, 2)), ((3, 50), (0,))], ids=str)
def test_a_float_mean_divides_by_the_count(shape, axes, keep_dims):
    inputs = [fed(random_floats(3, shape)), constant(np.int32(axes))]
    model, arrays = model_and_arrays(
        "MEAN", inputs, [tensor(())], ReducerOptions(keep_dims=keep_dims)
    )
    (mine,), (theirs,) = delegraph_outputs(model, arrays), official_outputs(model, arrays)
    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("op", OPS)
def test_axes_may_come_while_invoking(op):
    inputs = [fed(random_floats(2, (3, 4, 5))), fed(np.int32([2, 0]))]
    (y,) = assert_agrees(op, inputs, ["FLOAT32"], ReducerOptions(), tolerance=1e-5)
    assert y.shape == (4,)


@pytest.mark.parametrize("numerics", ["builtin", "reference"])
@pytest.mark.parametrize("axes", [(1, 2), (3,)])
@pytest.mark.parametrize("scales", [(0.0, 0.5), (0.5, 0.0), (0.0, 0.0), (None, None)], ids=str)
@pytest.mark.parametrize("zero_points", [(3, 5), (-4, -6)])
@pytest.mark.parametrize("op", ["SUM", "MEAN", "REDUCE_PROD"])
def test_a_scale_of_zero(op, zero_points, scales, axes, numerics):
    if (op, numerics) == ("SUM", "reference"):
        pytest.skip("the official kernel reads int8 as uint8")
    x = random_integers(4, "INT8", (2, 3, 3, 17))
    inputs = [fed(x, scale=scales[0], zero_point=zero_points[0]), constant(np.int32(axes))]
    y = tensor((), "INT8", scale=scales[1], zero_point=zero_points[1])
    model, arrays = model_and_arrays(op, inputs, [y], ReducerOptions(keep_dims=True), version=2)
    (mine,) = delegraph_outputs(model, arrays, numerics=numerics)
    (theirs,) = official_outputs(model, arrays, reference=numerics == "reference")
    np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("scale", [-0.5, np.nan])
def test_a_scale_that_is_no_positive_number_is_refused(scale):
    inputs = [fed(np.zeros((2, 3), np.int8), scale=scale), constant(np.int32([1]))]
    y = tensor((2,), "INT8", scale=0.5)
    with pytest.raises(RuntimeError, match="scale"):
        delegraph_outputs(*model_and_arrays("MEAN", inputs, [y], ReducerOptions(), version=2))


def quantized(op, type, x, axes, keep_dims, scales, zero_points):
    output = [tensor((), type, scale=scales[1], zero_point=zero_points[1])]
    inputs = [fed(x, scale=scales[0], zero_point=zero_points[0]), constant(np.int32(axes))]
    assert_agrees(op, inputs, output, ReducerOptions(keep_dims=keep_dims), version=2)


@pytest.mark.parametrize("keep_dims", [False, True])
@pytest.mark.parametrize(("shape", "axes"), CASES, ids=str)
@pytest.mark.parametrize("type", ["UINT8", "INT8", "INT16"])
@pytest.mark.parametrize("op", OPS)
def test_quantized_types_are_exact(op, type, shape, axes, keep_dims):
    if (op, type) == ("REDUCE_PROD", "UINT8"):
        pytest.skip("REDUCE_PROD has no quantized uint8")
    scales = SCALES.get(op, (0.1, 0.1))
    zero_points = (0, 0) if type == "INT16" else (60, 60 if "M" in op[7:] else 71)
    x = random_integers(3, type, shape)
    quantized(op, type, x, axes, keep_dims, scales, zero_points)


@pytest.mark.parametrize("keep_dims", [False, True])
@pytest.mark.parametrize("channels", [1, 15, 16, 37])
@pytest.mark.parametrize("size", [(1, 1), (3, 5), (7, 7), (11, 4)], ids=str)
@pytest.mark.parametrize("type", ["UINT8", "INT8"])
def test_spatial_means_are_exact(type, size, channels, keep_dims):
    x = random_integers(4, type, (2, *size, channels))
    for scales, zero_points in (((0.1, 0.037), (30, 50)), ((0.013, 0.09), (127, 0))):
        quantized("MEAN", type, x, (2, 1), keep_dims, scales, zero_points)


@pytest.mark.parametrize(("op", "function"), [("REDUCE_ANY", np.any), ("REDUCE_ALL", np.all)])
def test_bools(op, function):
    x = random_integers(5, "INT8", (3, 4, 2)) > 60
    inputs = [fed(x), constant(np.int32([1, -1]))]
    (y,) = assert_agrees(op, inputs, ["BOOL"], ReducerOptions())
    np.testing.assert_array_equal(y, function(x, axis=(1, 2)))


def test_an_axis_outside_is_refused():
    inputs = [fed(np.ones((3, 4), np.float32)), constant(np.int32([2]))]
    assert_both_refuse("SUM", inputs, ["FLOAT32"], ReducerOptions(), match="axis 2 is outside")


def test_extremes_refuse_another_quantization():
    inputs = [fed(np.ones((3, 4), np.int8), scale=0.1), constant(np.int32([1]))]
    output = [tensor((3,), "INT8", scale=0.2)]
    options = ReducerOptions()
    assert_both_refuse("REDUCE_MAX", inputs, output, options, match="expected the same", version=2)


def test_int16_zero_points_are_refused():
    inputs = [fed(np.ones((3, 4), np.int16), scale=0.1, zero_point=1), constant(np.int32([1]))]
    output = [tensor((3,), "INT16", scale=0.1)]
    assert_both_refuse("MEAN", inputs, output, ReducerOptions(), match="expected 0", version=3)


def test_numbers_have_no_any():
    inputs = [fed(np.int32([1])), constant(np.int32([0]))]
    assert_both_refuse("REDUCE_ANY", inputs, ["INT32"], ReducerOptions(), match="has type INT32")


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("op", ["REDUCE_MAX", "REDUCE_MIN"])
def test_what_follows_the_last_nan_counts(op, axes):
    x = random_floats(8, (5, 4, 6))
    x[random_floats(9, x.shape) > 1] = np.nan
    inputs = [fed(x), constant(np.int32(axes))]
    assert_agrees(op, inputs, ["FLOAT32"], ReducerOptions(keep_dims=False))


@pytest.mark.parametrize("first", [0.0, np.nan])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)], ids=str)
@pytest.mark.parametrize("op", ["REDUCE_MAX", "REDUCE_MIN"])
def test_the_reference_kernel_skips_nan(op, axes, first):
    x = np.float32([[first, 1, np.nan, -np.inf], [np.nan, 5, np.nan, -np.inf]])
    inputs = [tensor(x.shape), constant(np.int32(axes))]
    model = one_op_model(op, inputs, [tensor(())], ReducerOptions(keep_dims=False))
    (ours,) = delegraph_outputs(model, [x], numerics="reference")
    np.testing.assert_array_equal(ours, official_outputs(model, [x], reference=True)[0])


@pytest.mark.parametrize("type", ["INT8", "INT16"])
@pytest.mark.parametrize("axes", [(), (1,), (1, -1)], ids=str)
def test_a_product_over_axes_of_length_1_copies(type, axes):
    x = random_integers(3, type, (7, 1))
    inputs = [fed(x, scale=0.25), constant(np.array(axes, np.int32))]
    output = [tensor((), type, scale=0.5)]
    options = ReducerOptions(keep_dims=True)
    (y,) = assert_agrees("REDUCE_PROD", inputs, output, options, version=2)
    np.testing.assert_array_equal(y, x)


@pytest.mark.parametrize("op", ["SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"])
def test_single_bools_are_moved(op):
    x, options = np.array([[True], [False]]), ReducerOptions(keep_dims=False)
    (y,) = assert_agrees(op, [fed(x), constant(np.int32([1]))], ["BOOL"], options)
    assert y.tolist() == [True, False]
    inputs = [fed(x), constant(np.int32([0]))]
    assert_both_refuse(op, inputs, ["BOOL"], options, match="2 elements of BOOL")


@pytest.mark.parametrize("zero_point", [-34, 34])
def test_a_product_beyond_32_bits_wraps(zero_point):
    x = random_integers(4, "INT8", (30, 50))
    quantization = {"scale": 1.0, "zero_point": zero_point}
    inputs = [fed(x, **quantization), constant(np.int32([0]))]
    output = [tensor((), "INT8", **quantization)]
    assert_agrees("REDUCE_PROD", inputs, output, ReducerOptions(keep_dims=False), version=2)


@pytest.mark.parametrize("type", ["INT8", "INT16"])
def test_a_quantized_product_of_nothing_is_1(type):
    zero_point = 0 if type == "INT16" else 3
    x = tensor((2, 0), type, scale=0.5, zero_point=zero_point)
    y = tensor((2,), type, scale=0.5, zero_point=zero_point)
    model = one_op_model("REDUCE_PROD", [x, constant(np.int32([1]))], [y], ReducerOptions())
    (found,) = delegraph_outputs(model, [np.zeros((2, 0), type.lower())])
    np.testing.assert_array_equal(found, np.full(2, 2 + zero_point))
