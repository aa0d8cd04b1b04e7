"""RELU and its kin, LEAKY_RELU, ELU, HARD_SWISH, LOGISTIC and TANH."""

from __future__ import annotations

import platform

import numpy as np
import pytest

from delegraph import TensorType
from delegraph.graph.dtypes import NUMPY_DTYPES
from delegraph.schema.options import LeakyReluOptions
from delegraph.testing import delegraph_outputs, fed, one_op_model, tensor
from support.agreement import assert_agrees, assert_both_refuse
from support.official import official_outputs
from support.quantized_pairs import LIMITS, every_value, random_floats

LEAKY = [LeakyReluOptions(alpha=alpha) for alpha in (0.2, 1.5, -0.3)]
RELUS = ["RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1"]
CASES = [(op, None) for op in (*RELUS, "ELU", "HARD_SWISH", "LOGISTIC", "TANH")]
CASES += [("LEAKY_RELU", options) for options in LEAKY]
TYPES = {
    "ELU": ["INT8"],
    "RELU": ["UINT8", "INT8", "INT16"],
    "RELU6": ["UINT8", "INT8", "INT16"],
    "LEAKY_RELU": ["UINT8", "INT8", "INT16"],
}
QUANTIZED = [
    (op, options, type) for op, options in CASES for type in TYPES.get(op, ["UINT8", "INT8"])
]
SCALES = [(0.1, 0.1), (0.05, 0.09), (0.0321, 0.5), (0.4, 0.011), (0.0235, 0.0039)]


@pytest.mark.parametrize(("op", "options"), CASES, ids=str)
def test_floats(op, options):
    x = np.concatenate([random_floats(1, (3000,)), np.float32([0, -0.0, 100, -100, 1e-30])])
    assert_agrees(op, [fed(x)], ["FLOAT32"], options, tolerance=2e-6)


def test_logistic_is_above_0_as_far_as_exp_is():
    x = np.float32([-88, -89, -100, -103, -200, -np.inf, np.nan, 1])
    model = one_op_model("LOGISTIC", [tensor(x.shape)], [tensor(x.shape)])
    (found,) = delegraph_outputs(model, [x])
    with np.errstate(invalid="ignore"):
        expected = (1 / (1 + np.exp(-x.astype(np.float64)))).astype(np.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=0)


def test_elu_keeps_the_sign_of_zero():
    x = np.float32([0.0, -0.0] * 20)
    (y,) = delegraph_outputs(one_op_model("ELU", [tensor(x.shape)], [tensor(x.shape)]), [x])
    np.testing.assert_array_equal(np.signbit(y), np.signbit(x))


@pytest.mark.parametrize("scales", SCALES, ids=str)
@pytest.mark.parametrize(("op", "options", "type"), QUANTIZED, ids=str)
def test_every_quantized_value_is_exact(op, options, type, scales):
    x = every_value(type)
    low, _ = LIMITS[type]
    fraction = 0.01 if type == "INT16" else 1.0
    zero_points = (0, 0) if type == "INT16" else (low + 100, low + 137)
    scale, zero_point = scales[1] * fraction, zero_points[1]
    if op == "LOGISTIC":
        scale, zero_point = 1 / 256, low
    inputs = [fed(x, scale=scales[0] * fraction, zero_point=zero_points[0])]
    output = [tensor(x.shape, type, scale=scale, zero_point=zero_point)]
    assert_agrees(op, inputs, output, options)


@pytest.mark.parametrize("op", ["LOGISTIC", "TANH"])
def test_float16(op):
    x = random_floats(2, (500,)).astype(np.float16)
    assert_agrees(op, [fed(x)], ["FLOAT16"], version=3, tolerance=2e-3)


def test_logistic_into_another_scale_is_refused():
    inputs = [fed(np.int8([1]), scale=0.1)]
    output = [tensor((1,), "INT8", scale=0.01)]
    assert_both_refuse("LOGISTIC", inputs, output, match="expected 1/256", version=2)


def test_hard_swish_into_a_tiny_scale_is_refused():
    inputs = [fed(np.int8([1]), scale=1.0)]
    output = [tensor((1,), "INT8", scale=0.001)]
    assert_both_refuse("HARD_SWISH", inputs, output, match=r"below 1/128 of input scale 1\.0")


@pytest.mark.parametrize(("op", "options"), CASES, ids=str)
def test_int32_is_refused(op, options):
    assert_both_refuse(op, [fed(np.int32([1]))], ["INT32"], options, match="has type INT32")


@pytest.mark.parametrize("alpha", [0.0, np.inf, 0.2])
def test_leaky_relu_of_infinities(alpha):
    x = np.float32([np.inf, -np.inf, np.nan, 0, 3, -3])
    assert_agrees(
        "LEAKY_RELU", [fed(x)], ["FLOAT32"], LeakyReluOptions(alpha=alpha), tolerance=1e-6
    )


def test_bounds_that_a_small_scale_makes_infinite():
    x = fed(every_value("INT8"), scale=1e-38, zero_point=3)
    output = [tensor(x.array.shape, "INT8", scale=1e-38, zero_point=-4)]
    assert_agrees("RELU6", [x], output, version=2)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="as x86 compares zeros")
@pytest.mark.parametrize("op", RELUS)
@pytest.mark.parametrize("length", [1, 7, 16, 33])
def test_zeros_keep_their_sign(op, length):
    x = np.full(length, -0.0, np.float32)
    (y,) = assert_agrees(op, [fed(x)], ["FLOAT32"])
    assert np.signbit(y).all()


@pytest.mark.parametrize("type_", ["FLOAT16", "BFLOAT16"])
def test_every_number_is_the_official_one(type_: str) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(NUMPY_DTYPES[TensorType[type_]])
    numbers = every[~np.isnan(every.astype(np.float32))]
    x, y = (tensor(numbers.shape, type_) for _ in range(2))
    model = one_op_model("LOGISTIC", [x], [y])
    (wanted,), (found,) = official_outputs(model, [numbers]), delegraph_outputs(model, [numbers])
    np.testing.assert_array_equal(found.view(np.uint16), np.asarray(wanted).view(np.uint16))
