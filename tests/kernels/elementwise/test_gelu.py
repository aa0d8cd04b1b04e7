"""GELU."""

import numpy as np
import pytest

from delegraph.schema.options import GeluOptions
from delegraph.testing import fed, tensor
from support.agreement import assert_agrees, assert_both_refuse
from support.quantized_pairs import LIMITS, every_value, random_floats

OPTIONS = [GeluOptions(approximate=approximate) for approximate in (False, True)]
SCALES = [(0.1, 0.1), (0.05, 0.09), (0.0321, 0.5), (0.4, 0.011), (0.0235, 0.0039)]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_floats(options):
    x = np.concatenate([random_floats(1, (3000,)), np.float32([0, -0.0, 100, -100, 1e-30])])
    assert_agrees("GELU", [fed(x)], ["FLOAT32"], options, tolerance=2e-6)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_float16_is_exact(options):
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    assert_agrees("GELU", [fed(x)], ["FLOAT16"], options, version=3)


@pytest.mark.parametrize("scales", SCALES, ids=str)
@pytest.mark.parametrize("type", ["UINT8", "INT8", "INT16"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_quantized_value_is_exact(options, type, scales):
    x = every_value(type)
    low, _ = LIMITS[type]
    fraction = 0.01 if type == "INT16" else 1.0
    zero_points = (0, 0) if type == "INT16" else (low + 100, low + 137)
    inputs = [fed(x, scale=scales[0] * fraction, zero_point=zero_points[0])]
    output = [tensor(x.shape, type, scale=scales[1] * fraction, zero_point=zero_points[1])]
    assert_agrees("GELU", inputs, output, options)


def test_int32_is_refused():
    inputs = [fed(np.int32([1]))]
    assert_both_refuse("GELU", inputs, ["INT32"], OPTIONS[0], match="has type INT32")
