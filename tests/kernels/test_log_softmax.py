"""LOG_SOFTMAX."""

import numpy as np
import pytest

from delegraph.testing import fed, tensor
from support.agreement import assert_agrees, assert_both_refuse
from support.quantized_pairs import LIMITS, random_floats, random_integers

SHAPES = [(7,), (3, 10), (2, 3, 1001), (50, 2), (2, 3, 4, 5)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_floats(shape):
    assert_agrees("LOG_SOFTMAX", [fed(random_floats(4, shape))], ["FLOAT32"], tolerance=2e-6)


@pytest.mark.parametrize("scale", [0.003, 0.02, 0.1, 0.5])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("type", ["UINT8", "INT8"])
def test_8_bit_integers_are_exact(type, shape, scale):
    x = random_integers(5, type, shape)
    output = [tensor(shape, type, scale=16 / 256, zero_point=LIMITS[type][1])]
    assert_agrees("LOG_SOFTMAX", [fed(x, scale=scale, zero_point=3)], output, version=2)


def test_other_output_scales_are_refused():
    inputs = [fed(np.zeros(3, np.int8), scale=0.1)]
    output = [tensor((3,), "INT8", scale=0.1, zero_point=127)]
    assert_both_refuse("LOG_SOFTMAX", inputs, output, match="expected 1/16 and 127", version=2)


def test_rows_without_elements():
    inputs = [fed(np.zeros((3, 0), np.uint8), scale=0.1)]
    output = [tensor((), "UINT8", scale=16 / 256, zero_point=255)]
    assert_agrees("LOG_SOFTMAX", inputs, output)
