"""FAKE_QUANT."""

import numpy as np
import pytest

from delegraph.errors import NodeError
from delegraph.schema.options import FakeQuantOptions
from delegraph.testing import delegraph_outputs, fed
from support.agreement import assert_agrees, assert_both_refuse, model_and_arrays
from support.quantized_pairs import random_floats


@pytest.mark.parametrize(
    ("low", "high", "bits"), [(-1.0, 1.0, 8), (0.0, 6.0, 4), (-10.0, 0.0, 16), (-3.0, 5.0, 2)]
)
def test_values_fall_on_steps(low, high, bits):
    options = FakeQuantOptions(min=low, max=high, num_bits=bits)
    x = random_floats(1, (1000,))
    (y,) = assert_agrees("FAKE_QUANT", [fed(x)], ["FLOAT32"], options, tolerance=1e-6)
    assert len(np.unique(y)) <= 2**bits


def test_narrow_ranges_are_refused():
    options = FakeQuantOptions(min=-1.0, max=1.0, num_bits=8, narrow_range=True)
    inputs = [fed(np.float32([1]))]
    assert_both_refuse("FAKE_QUANT", inputs, ["FLOAT32"], options, match="narrow_range", version=2)


@pytest.mark.parametrize(("low", "high"), [(1.0, 3.0), (-3.0, -1.0)])
def test_ranges_without_zero_are_moved_to_it(low, high):
    options = FakeQuantOptions(min=low, max=high, num_bits=8)
    assert_agrees(
        "FAKE_QUANT", [fed(random_floats(2, (99,)))], ["FLOAT32"], options, tolerance=1e-6
    )


def test_the_step_of_zero_has_16_bits():
    options = FakeQuantOptions(min=-4.8, max=2.6, num_bits=17)
    assert_agrees(
        "FAKE_QUANT", [fed(random_floats(3, (99,)))], ["FLOAT32"], options, tolerance=1e-6
    )


def test_nan_becomes_the_smallest_value():
    options = FakeQuantOptions(min=-1.0, max=1.0, num_bits=8)
    x = np.float32([np.nan, np.inf, -np.inf])
    assert_agrees("FAKE_QUANT", [fed(x)], ["FLOAT32"], options, tolerance=1e-6)


@pytest.mark.parametrize("bits", [1, 31])
def test_any_number_of_bits_that_int32_has_is_taken(bits):
    options = FakeQuantOptions(min=-3.0, max=5.0, num_bits=bits)
    x = np.float32([-4, -1.3, 0, 2.7, 9])
    assert_agrees("FAKE_QUANT", [fed(x)], ["FLOAT32"], options, tolerance=1e-6)


@pytest.mark.parametrize("bits", [-1, 32, 2_000_000_000])
def test_other_numbers_of_bits_are_refused(bits):
    options = FakeQuantOptions(min=-3.0, max=5.0, num_bits=bits)
    model, arrays = model_and_arrays("FAKE_QUANT", [fed(np.float32([1]))], ["FLOAT32"], options)
    with pytest.raises(NodeError, match=f"num_bits is {bits}, expected 0 to 31"):
        delegraph_outputs(model, arrays)
