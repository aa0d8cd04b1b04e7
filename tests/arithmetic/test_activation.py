"""Fused activations."""

import numpy as np
import pytest

from delegraph.arithmetic.activation import (
    BiasClamp,
    apply_activation,
    float_activation_range,
    quantized_activation_range,
    quantized_clip,
)
from delegraph.errors import OperatorError
from delegraph.graph.model import Quantization
from delegraph.operators.tensor import Tensor
from delegraph.schema.enums import ActivationFunctionType as Act
from delegraph.schema.enums import TensorType


def quantized(type_, scale, zero_point):
    scales = np.array([scale], np.float32)
    quantization = Quantization(scales, np.array([zero_point], np.int32))
    return Tensor(0, TensorType[type_], (1,), quantization=quantization)


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (Act.NONE, (-128, 127)),
        (Act.RELU, (-10, 127)),
        (Act.RELU6, (-10, 50)),
        (Act.RELU_N1_TO_1, (-20, 0)),
        (Act.TANH, (-128, 127)),
    ],
)
def test_bounds_are_quantised_by_the_outputs_scale(act, expected):
    assert quantized_activation_range(act, quantized("INT8", 0.1, -10)) == expected


def test_bounds_stay_within_the_type():
    assert quantized_activation_range(Act.RELU6, quantized("UINT8", 0.01, 5)) == (5, 255)


def test_other_output_types_have_no_range():
    with pytest.raises(OperatorError, match="FLOAT32, expected UINT8"):
        quantized_activation_range(Act.NONE, Tensor(0, TensorType.FLOAT32, (1,)))


def test_a_bound_beyond_int32_is_refused():
    with pytest.raises(OperatorError, match="out of range"):
        quantized_activation_range(Act.RELU6, quantized("INT8", 1e-12, 0))


@pytest.mark.parametrize(
    ("act", "function"),
    [
        (Act.NONE, lambda x: x),
        (Act.RELU, lambda x: np.maximum(x, 0)),
        (Act.RELU6, lambda x: np.clip(x, 0, 6)),
        (Act.RELU_N1_TO_1, lambda x: np.clip(x, -1, 1)),
        (Act.TANH, np.tanh),
        (Act.SIGN_BIT, np.signbit),
    ],
)
def test_float_activations(act, function):
    x = np.linspace(-9, 9, 50, dtype=np.float32)
    y = x.copy()
    apply_activation(act, y)
    np.testing.assert_array_equal(y, function(x))


@pytest.mark.parametrize("channels", [1, 3, 700, 3000])
def test_bias_and_clamp(channels):
    rng = np.random.default_rng(0)
    bias = rng.standard_normal(channels).astype(np.float32)
    x = rng.standard_normal((7, channels)).astype(np.float32)
    y = x.copy()
    BiasClamp(bias, *float_activation_range(Act.RELU6))(y)
    np.testing.assert_array_equal(y, np.clip(x + bias, 0, 6))


@pytest.mark.parametrize(("clip", "expected"), [(0.0, 0), (1.5, 15), (1.57, 15), (99.0, 127)])
def test_a_clip_is_rounded_down_and_kept_in_range(clip, expected):
    assert quantized_clip(clip, quantized("INT8", 0.1, 0), 127) == expected
