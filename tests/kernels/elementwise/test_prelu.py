"""PRELU."""

import numpy as np
import pytest

from delegraph.testing import fed, tensor
from support.agreement import assert_agrees, assert_both_refuse
from support.quantized_pairs import every_pair, random_floats, random_integers


@pytest.mark.parametrize("shape", [(6,), (1, 6), (4, 5, 6), (5, 1)], ids=str)
def test_negative_floats_are_scaled_by_alpha(shape):
    x, alpha = random_floats(1, (4, 5, 6)), random_floats(2, shape)
    (y,) = assert_agrees("PRELU", [fed(x), fed(alpha)], ["FLOAT32"], tolerance=1e-6)
    np.testing.assert_array_equal(y, np.where(x >= 0, x, x * alpha))


@pytest.mark.parametrize("alpha", [np.nan, np.inf, -np.inf])
def test_alpha_does_not_matter_from_0_on(alpha):
    x = np.float32([2, 0, -0.0, -3, np.inf, -np.inf, np.nan])
    (y,) = assert_agrees("PRELU", [fed(x), fed(np.full(7, alpha, np.float32))], ["FLOAT32"])
    np.testing.assert_array_equal(y[[0, 1, 2, 4]], x[[0, 1, 2, 4]])


@pytest.mark.parametrize("scales", [(0.1, 0.1, 0.1), (0.05, 0.02, 0.09), (0.1, 0.01, 0.03)])
@pytest.mark.parametrize("type", ["UINT8", "INT8"])
def test_every_8_bit_pair_is_exact(type, scales):
    x, alpha = every_pair(type)
    inputs = [fed(x, scale=scales[0], zero_point=10), fed(alpha, scale=scales[1], zero_point=20)]
    output = [tensor(x.shape, type, scale=scales[2], zero_point=30)]
    assert_agrees("PRELU", inputs, output)


def test_an_alpha_larger_than_the_input_is_refused():
    inputs = [fed(np.ones((1, 6), np.float32)), fed(np.ones((4, 6), np.float32))]
    assert_both_refuse("PRELU", inputs, ["FLOAT32"], match="does not broadcast to")


@pytest.mark.parametrize("shape", [(6,), (4, 500, 6)], ids=str)
@pytest.mark.parametrize("scales", [(0.1, 0.1, 0.1), (0.001, 0.02, 0.09)])
def test_int16_has_an_alpha_of_int8(scales, shape):
    x, alpha = random_integers(1, "INT16", (4, 500, 6)), random_integers(2, "INT8", shape)
    inputs = [fed(x, scale=scales[0]), fed(alpha, scale=scales[1])]
    assert_agrees("PRELU", inputs, [tensor((), "INT16", scale=scales[2])])
