"""L2_NORMALIZATION."""

import numpy as np
import pytest

from delegraph.schema.enums import ActivationFunctionType
from delegraph.schema.options import L2NormOptions
from delegraph.testing import fed, tensor
from support.agreement import assert_agrees, assert_both_refuse
from support.quantized_pairs import every_pair, random_floats, random_integers

SHAPES = [(7,), (3, 10), (2, 3, 101), (2, 3, 4, 5)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_floats(shape):
    x = random_floats(1, shape)
    (y,) = assert_agrees("L2_NORMALIZATION", [fed(x)], ["FLOAT32"], L2NormOptions(), tolerance=1e-6)
    np.testing.assert_allclose(np.linalg.norm(y, axis=-1), 1, rtol=1e-5)


def test_the_length_of_zeros_is_not_zero():
    inputs = [fed(np.zeros(3, np.float32))]
    assert_agrees("L2_NORMALIZATION", inputs, ["FLOAT32"], L2NormOptions())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("type", "zero_point"), [("UINT8", 128), ("INT8", 0)])
def test_8_bit_integers_are_exact(type, zero_point, shape):
    inputs = [fed(random_integers(2, type, shape), scale=0.1, zero_point=5)]
    output = [tensor(shape, type, scale=1 / 128, zero_point=zero_point)]
    assert_agrees("L2_NORMALIZATION", inputs, output, L2NormOptions(), version=2)


@pytest.mark.parametrize(("type", "zero_point"), [("UINT8", 128), ("INT8", 0)])
def test_every_pair_of_bytes_is_exact(type, zero_point):
    pairs = np.stack(every_pair(type), -1).reshape(-1, 2)
    output = [tensor(pairs.shape, type, scale=1 / 128, zero_point=zero_point)]
    for zero in (zero_point, zero_point - 100):
        inputs = [fed(pairs, scale=0.1, zero_point=zero)]
        assert_agrees("L2_NORMALIZATION", inputs, output, L2NormOptions(), version=2)


def test_other_output_scales_are_refused():
    inputs = [fed(np.int8([1]), scale=0.1)]
    output = [tensor((1,), "INT8", scale=0.1)]
    options = L2NormOptions()
    assert_both_refuse("L2_NORMALIZATION", inputs, output, options, match="expected 1/128 and 0")


def test_a_fused_activation_is_refused():
    options = L2NormOptions(fused_activation_function=ActivationFunctionType.RELU)
    inputs = [fed(np.float32([1]))]
    assert_both_refuse("L2_NORMALIZATION", inputs, ["FLOAT32"], options, match="fused activation")
