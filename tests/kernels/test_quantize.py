"""QUANTIZE."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from delegraph import Interpreter
from delegraph.errors import NodeError
from delegraph.testing import constant, fed, one_op_model, tensor
from support.agreement import assert_agrees, assert_both_refuse
from support.quantized_pairs import LIMITS, every_value, random_floats, random_integers

ZERO_POINTS = {"UINT8": [0, 128, 255], "INT8": [-128, 0, 127], "INT16": [0, 100]}
FLOAT_CASES = [(type, zero) for type, zeros in ZERO_POINTS.items() for zero in zeros]
TIES = np.arange(-300, 300, dtype=np.float32) * np.float32(0.05)


@pytest.mark.parametrize("scale", [0.1, 0.05, 0.5, 0.003922, 1 / 256])
@pytest.mark.parametrize(("type", "zero_point"), FLOAT_CASES)
def test_floats_are_exact_also_between_two_steps(type, zero_point, scale):
    x = np.concatenate([random_floats(1, (5003,), 20), TIES, np.float32([0, -0.0, 1e6, -1e6])])
    output = [tensor(x.shape, type, scale=scale, zero_point=zero_point)]
    assert_agrees("QUANTIZE", [fed(x)], output, version=2)


@pytest.mark.parametrize("size", [1, 5, 8, 16, 37, 160, 40000])
def test_floats_that_vector_loops_leave_over_are_exact(size):
    x = TIES[np.random.default_rng(size).integers(0, len(TIES), size)]
    output = [tensor(x.shape, "INT8", scale=0.1, zero_point=5)]
    assert_agrees("QUANTIZE", [fed(x)], output, version=2)


@pytest.mark.parametrize("type", ZERO_POINTS)
def test_nan_becomes_the_least_integer(type):
    x = np.float32([np.nan, 1, -np.nan, *[0.25] * 6, np.nan, -1])
    output = [tensor(x.shape, type, scale=0.5, zero_point=0)]
    (y,) = assert_agrees("QUANTIZE", [fed(x)], output, version=2)
    assert y[[0, 2, 9]].tolist() == [LIMITS[type][0]] * 3


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_every_channel_has_its_scale(axis):
    x = random_floats(2, (3, 5, 4))
    scales = np.linspace(0.01, 0.1, x.shape[axis])
    zero_points = np.arange(x.shape[axis]) - 2
    output = [tensor(x.shape, "INT8", scale=scales, zero_point=zero_points, axis=axis)]
    assert_agrees("QUANTIZE", [fed(x)], output, version=2)


REQUANTIZED = [
    ("UINT8", "UINT8"), ("UINT8", "INT8"), ("INT8", "UINT8"), ("INT8", "INT8"),
    ("UINT8", "INT16"), ("INT8", "INT16"), ("INT16", "INT8"), ("INT16", "INT32"),
]  # fmt: skip


@pytest.mark.parametrize("scales", [(0.1, 0.1), (0.1, 0.037), (0.01, 0.9), (0.5, 0.25)], ids=str)
@pytest.mark.parametrize("zero_points", [(3, 5), (0, 0), (127, -128)], ids=str)
@pytest.mark.parametrize(("type", "result"), REQUANTIZED)
def test_every_integer_is_exact(type, result, zero_points, scales):
    x = every_value(type)
    into = zero_points[1] + (128 if result == "UINT8" else 0)
    output = [tensor(x.shape, result, scale=scales[1], zero_point=into)]
    inputs = [fed(x, scale=scales[0], zero_point=zero_points[0])]
    assert_agrees("QUANTIZE", inputs, output, version=3)


@pytest.mark.parametrize("result", ["INT8", "INT16"])
def test_int32_is_exact(result):
    x = random_integers(3, "INT32", (5001,)) >> 14
    output = [tensor(x.shape, result, scale=0.9, zero_point=3)]
    assert_agrees("QUANTIZE", [fed(x, scale=0.01, zero_point=7)], output, version=3)


@settings(max_examples=25)
@given(
    scales=st.tuples(st.floats(1 / 128, 0.5, width=32), st.floats(1 / 128, 0.5, width=32)),
    type=st.sampled_from(["UINT8", "INT8"]),
    size=st.integers(1, 300),
)
def test_any_8_bit_requantisation_is_exact(scales, type, size):
    x = random_integers(size, type, (size,))
    output = [tensor(x.shape, "INT8", scale=scales[1], zero_point=5)]
    inputs = [fed(x, scale=scales[0], zero_point=LIMITS[type][0] + 50)]
    assert_agrees("QUANTIZE", inputs, output, version=3)


def test_constants_are_quantized_too():
    output = [tensor((3,), "INT8", scale=0.5)]
    assert_agrees("QUANTIZE", [constant(np.float32([0.25, 0.75, -0.25]))], output)


def test_an_output_without_scale_is_refused():
    assert_both_refuse("QUANTIZE", [fed(np.float32([1]))], ["INT8"], match="has no scale")


def test_int16_to_int16_refuses_zero_points():
    inputs = [fed(np.int16([1]), scale=0.1, zero_point=1)]
    output = [tensor((1,), "INT16", scale=0.1)]
    assert_both_refuse("QUANTIZE", inputs, output, match="expected 0", version=3)


def test_other_types_are_refused():
    output = [tensor((1,), "INT8", scale=0.1)]
    assert_both_refuse("QUANTIZE", [fed(np.int64([1]))], output, match="has type INT64")


@pytest.mark.parametrize("type", ["INT16", "INT32"])
def test_integers_without_a_scale_become_the_zero_point(type):
    x = np.arange(-5, 6).astype(type.lower())
    output = [tensor((), "INT8", scale=0.5, zero_point=-7)]
    (y,) = assert_agrees("QUANTIZE", [fed(x)], output, version=3)
    assert (y == -7).all()


def test_int4_with_a_scale_a_channel_is_refused():
    output = [tensor((2,), "INT4", scale=[0.1, 0.2], zero_point=[0, 0])]
    inputs = [fed(np.float32([1, 2]))]
    assert_both_refuse("QUANTIZE", inputs, output, match="expected one scale", version=4)


def test_a_resized_output_has_no_more_channels_than_scales() -> None:
    y = tensor((2, 3), "INT8", scale=[0.5, 0.25, 1], zero_point=[0, 0, 0], axis=1)
    interpreter = Interpreter(
        model_content=one_op_model("QUANTIZE", [tensor((2, 3))], [y]), delegates=[]
    )
    interpreter.resize_tensor_input(0, [2, 4])
    with pytest.raises(NodeError, match=r"output 't1' has 3 scales, its shape is \(2, 4\)"):
        interpreter.allocate_tensors()
