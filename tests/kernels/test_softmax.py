"""SOFTMAX."""

import numpy as np
import pytest

from delegraph.schema.options import SoftmaxOptions
from delegraph.testing import delegraph_outputs, fed, tensor
from support.agreement import assert_agrees, assert_both_refuse, model_and_arrays
from support.official import official_outputs
from support.quantized_pairs import LIMITS, random_floats, random_integers

SHAPES = [(7,), (3, 10), (2, 3, 1001), (50, 2), (2, 3, 4, 5)]
ONE = SoftmaxOptions(beta=1.0)


@pytest.mark.parametrize("beta", [1.0, 0.5])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_floats(shape, beta):
    x = random_floats(1, shape)
    options = SoftmaxOptions(beta=beta)
    (y,) = assert_agrees("SOFTMAX", [fed(x)], ["FLOAT32"], options, tolerance=1e-6)
    np.testing.assert_allclose(y.sum(-1), 1, rtol=1e-5)


def test_float16():
    """Exponentials are rounded, their sum is not; a last bit may differ between processors."""
    model, arrays = model_and_arrays(
        "SOFTMAX",
        [fed(random_floats(2, (20, 100)).astype(np.float16))],
        ["FLOAT16"],
        ONE,
        version=4,
    )
    (y,), (right,) = delegraph_outputs(model, arrays), official_outputs(model, arrays)
    assert y.dtype == right.dtype
    assert np.count_nonzero(y != right) <= 2


@pytest.mark.parametrize("scale", [0.003, 0.1, 0.5])
@pytest.mark.parametrize("beta", [1.0, 0.7])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    ("type", "result"),
    [("UINT8", "UINT8"), ("INT8", "INT8"), ("UINT8", "INT16"), ("INT8", "INT16")],
)
def test_8_bit_integers_are_exact(type, result, shape, beta, scale):
    x = random_integers(2, type, shape)
    low, high = LIMITS[result]
    output = [tensor(shape, result, scale=1 / (high - low + 1), zero_point=low)]
    options = SoftmaxOptions(beta=beta)
    assert_agrees("SOFTMAX", [fed(x, scale=scale, zero_point=3)], output, options, version=2)


@pytest.mark.parametrize("scale", [1e-4, 1e-3, 0.3])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_int16_is_exact(shape, scale):
    x = random_integers(3, "INT16", shape)
    output = [tensor(shape, "INT16", scale=2.0**-15)]
    assert_agrees("SOFTMAX", [fed(x, scale=scale)], output, ONE, version=3)


@pytest.mark.parametrize(
    ("type", "scale", "expected"), [("INT8", 0.1, "1/256 and -128"), ("INT16", 0.1, "1/32768")]
)
def test_other_output_scales_are_refused(type, scale, expected):
    inputs = [fed(np.zeros(3, type.lower()), scale=0.1)]
    output = [tensor((3,), type, scale=scale)]
    assert_both_refuse("SOFTMAX", inputs, output, ONE, match=expected, version=3)


def test_scalars_are_refused():
    inputs = [fed(np.float32(1))]
    assert_both_refuse("SOFTMAX", inputs, ["FLOAT32"], ONE, match="at least one dimension")


def test_rows_without_elements():
    inputs = [fed(np.zeros((3, 0), np.uint8), scale=0.1)]
    (y,) = assert_agrees("SOFTMAX", inputs, [tensor((), "UINT8", scale=1 / 256)], ONE)
    assert y.shape == (3, 0)
