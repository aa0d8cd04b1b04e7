"""DEQUANTIZE."""

import numpy as np
import pytest

from delegraph.errors import NodeError
from delegraph.schema.writer import write_model
from delegraph.testing import constant, delegraph_outputs, fed, one_op_model, tensor
from delegraph.testing.one_op import one_op_records
from delegraph.testing.operator_cases.quantizing import with_blocks
from support.agreement import assert_agrees, assert_both_refuse, model_and_arrays
from support.quantized_pairs import every_value, random_integers


@pytest.mark.parametrize(("scale", "zero_point"), [(0.1, 3), (0.0123, 0), (0.5, 100)])
@pytest.mark.parametrize("type", ["UINT8", "INT8", "INT16"])
def test_every_integer(type, scale, zero_point):
    zero_point = 0 if type == "INT16" else zero_point
    inputs = [fed(every_value(type), scale=scale, zero_point=zero_point)]
    assert_agrees("DEQUANTIZE", inputs, ["FLOAT32"], version=2)


@pytest.mark.parametrize("type", ["INT8", "UINT8", "INT4", "UINT4", "INT2"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_constants_with_a_scale_a_channel(type, axis):
    x = random_integers(1, "INT8", (3, 5, 4))
    limits = {"INT4": (-8, 7), "UINT4": (0, 15), "INT2": (-2, 1), "UINT8": (0, 127)}
    x = x.clip(*limits.get(type, (-128, 127)))
    scales = np.linspace(0.01, 0.1, x.shape[axis])
    zeros = np.arange(x.shape[axis]) if type == "INT8" else 0
    values = x.astype(np.uint8) if type in ("UINT8", "UINT4") else x
    inputs = [constant(values, type, scale=scales, zero_point=zeros, axis=axis)]
    assert_agrees("DEQUANTIZE", inputs, ["FLOAT32"], version=6)


def blocks(values, type, scales, size):
    records = one_op_records("DEQUANTIZE", [constant(values, type)], [tensor(values.shape)])
    return write_model(with_blocks(records, 0, scales, size))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("type", ["INT4", "INT8"])
def test_constants_with_a_scale_a_block(type, dtype):
    x = random_integers(2, "INT8", (3, 64)).clip(-8, 7)
    scales = np.linspace(0.1, 1, 6).astype(dtype).reshape(3, 2)
    (y,) = delegraph_outputs(blocks(x, type, scales, 32), [])
    of_elements = np.repeat(scales.astype(np.float32), 32, axis=1)
    np.testing.assert_array_equal(y, x.astype(np.float32) * of_elements)


@pytest.mark.parametrize(("count", "size"), [(5, 32), (4, 48), (6, 64)])
def test_blocks_that_do_not_fit_are_refused(count, size):
    model = blocks(np.zeros((3, 64), np.int8), "INT8", np.ones(count, np.float16), size)
    with pytest.raises(RuntimeError, match=f"{count} scales of {size} elements"):
        delegraph_outputs(model, [])


def test_float16_is_widened():
    x = np.float16([0.1, -3, 65504, np.inf])
    (y,) = assert_agrees("DEQUANTIZE", [fed(x)], ["FLOAT32"], version=3)
    np.testing.assert_array_equal(y, x.astype(np.float32))


def test_int16_zero_points_are_refused():
    inputs = [fed(np.int16([1]), scale=0.1, zero_point=2)]
    assert_both_refuse("DEQUANTIZE", inputs, ["FLOAT32"], match="expected 0", version=3)


def test_other_types_are_refused():
    assert_both_refuse("DEQUANTIZE", [fed(np.int64([1]))], ["FLOAT32"], match="has type INT64")


@pytest.mark.parametrize("type", ["INT4", "INT8", "UINT8", "INT16"])
def test_integers_without_a_scale_stand_for_zero(type):
    x = random_integers(9, type, (11,)) if type != "INT4" else np.int8([-8, 3, 7])
    (y,) = assert_agrees("DEQUANTIZE", [fed(x, type)], ["FLOAT32"], version=4)
    assert not y.any()


def test_packed_integers_without_elements():
    inputs = [fed(np.zeros((2, 0), np.int8), "INT4", scale=0.5)]
    assert_agrees("DEQUANTIZE", inputs, ["FLOAT32"], version=4)


def test_channels_without_a_scale_of_their_own_are_refused():
    x = fed(np.zeros(5, np.int8), scale=[0.5, 0.25, 1, 2, 4], zero_point=[0] * 5)
    model, _ = model_and_arrays("DEQUANTIZE", [x], ["FLOAT32"], version=2)
    with pytest.raises(NodeError, match=r"has 5 scales, expected one for each channel of \[2\]"):
        delegraph_outputs(model, [np.zeros(2, np.int8)])


def test_scales_along_an_axis_that_is_not_there_are_refused():
    x = tensor((), "INT8", scale=[0.5, 0.25], zero_point=[0, 0])
    model = one_op_model("DEQUANTIZE", [x], [tensor(())], version=2)
    with pytest.raises(NodeError, match="has scales along axis 0, it has 0"):
        delegraph_outputs(model, [np.zeros((), np.int8)])
