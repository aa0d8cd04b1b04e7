"""Requantisation in float64 against the definition in integers."""

import numpy as np
import pytest

from delegraph.arithmetic.accumulator_scaling import (
    fixed_point_scaling,
    int64_scaling,
    real_scaling,
)
from delegraph.arithmetic.requantize import Method, Requantize
from support.kernel_context import Memory

SCALINGS = {
    "halves-up": lambda m: fixed_point_scaling(m, halves_away=False),
    "halves-away": lambda m: fixed_point_scaling(m, halves_away=True),
    "mixed": lambda m: fixed_point_scaling(m, np.arange(len(m)) % 2 == 0),
    "int64": int64_scaling,
    "real": real_scaling,
}
MULTIPLIERS = [2.0**-20, 2.0**-13, 0.00031, 0.004, 0.24999, 0.5, 0.97, 1.0, 7.3]
FORMS = {
    "u1": (np.uint8, 0, 255, 131),
    "i1": (np.int8, -128, 127, -5),
    "i2": (np.int16, -32768, 32767, 0),
}


def near_ties(multiplier, low, high):
    """Return accumulators whose results are close to halves, and the range's ends."""
    halves = np.arange(low - 3, high + 4, max((high - low) // 300, 1)) + 0.5
    centres = np.rint(halves / multiplier).astype(np.int64)
    steps = np.arange(-3, 4)
    around = (centres[:, None] + steps).ravel()
    return around[np.abs(around) < 2**24]


@pytest.mark.parametrize("make", SCALINGS.values(), ids=SCALINGS)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("multiplier", MULTIPLIERS)
@pytest.mark.parametrize("bound", [2**17, 2**24])
def test_every_boundary_rounds_as_in_integers(make, form, multiplier, bound):
    dtype, low, high, zero_point = form
    rng = np.random.default_rng(0)
    multipliers = multiplier * rng.uniform(0.5, 1, 6)
    bias = rng.integers(-2000, 2000, 6)
    ties = near_ties(float(multipliers[0]), low - zero_point, high - zero_point)
    acc = np.concatenate([ties, rng.integers(-bound, bound, 600), [bound, -bound, 0]])
    acc = np.stack([acc[np.abs(acc) <= bound]] * 6, axis=1)
    scaling = make(multipliers)
    expected = np.clip(scaling.exact(acc + bias) + zero_point, low, high)
    requantize = Requantize(
        Memory(), scaling, bias, float(bound), zero_point, low, high, np.dtype(dtype)
    )
    out = np.zeros(acc.shape, dtype)
    requantize(acc.astype(np.float32), out)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("channels", [1, 3, 1000, 2048, 5000, 40000])
@pytest.mark.parametrize("rows", [1, 2, 13])
def test_any_number_of_channels_and_rows(channels, rows):
    rng = np.random.default_rng(0)
    scaling = fixed_point_scaling(rng.uniform(0.001, 0.01, channels), halves_away=True)
    bias = rng.integers(-5000, 5000, channels)
    acc = rng.integers(-40000, 40000, (rows, channels))
    requantize = Requantize(Memory(), scaling, bias, 40000.0, 3, -128, 127, np.dtype(np.int8))
    out = np.zeros(acc.shape, np.int8)
    requantize(acc.astype(np.float32), out)
    np.testing.assert_array_equal(out, np.clip(scaling.exact(acc + bias) + 3, -128, 127))


def test_a_clamp_at_the_zero_point_changes_no_other_value():
    scaling = fixed_point_scaling(np.full(4, 0.0037), halves_away=True)
    acc, bias = np.arange(-20000, 20000).reshape(-1, 4), np.zeros(4, np.int64)
    requantize = Requantize(Memory(), scaling, bias, 20000.0, 7, 7, 255, np.dtype(np.uint8))
    out = np.zeros(acc.shape, np.uint8)
    requantize(acc.astype(np.float32), out)
    np.testing.assert_array_equal(out, np.clip(scaling.exact(acc) + 7, 7, 255))


@pytest.mark.parametrize("bias", [2**31 - 1, -(2**31)])
def test_a_huge_bias_saturates(bias):
    scaling = fixed_point_scaling(np.full(2, 0.01), halves_away=False)
    biases = np.full(2, bias)
    requantize = Requantize(Memory(), scaling, biases, 10.0, 0, -128, 127, np.dtype(np.int8))
    out = np.zeros((1, 2), np.int8)
    requantize(np.zeros((1, 2), np.float32), out)
    assert out.tolist() == [[127 if bias > 0 else -128] * 2]


def test_without_a_context_integers_compute_the_same():
    rng = np.random.default_rng(0)
    scaling = fixed_point_scaling(rng.uniform(0.001, 0.01, 9), halves_away=False)
    bias, acc = rng.integers(-500, 500, 9), rng.integers(-40000, 40000, (50, 9))
    results = []
    for context in (Memory(), None):
        results.append(np.zeros(acc.shape, np.int8))
        requantize = Requantize(context, scaling, bias, 40000.0, 0, -128, 127, np.dtype(np.int8))
        requantize(acc.astype(np.float64), results[-1])
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize(
    ("multiplier", "bound", "method"),
    [(0.004, 2**24, "TRUNCATE"), (2.0**-15, 2**17, "FLOOR_FIRST"), (2.0**-20, 2**24, "INTEGERS")],
)
def test_tiny_multipliers_take_slower_methods(multiplier, bound, method):
    scaling, bias = fixed_point_scaling(np.full(3, multiplier), False), np.zeros(3, np.int64)
    dtype = np.dtype(np.int8)
    requantize = Requantize(Memory(), scaling, bias, float(bound), 5, -128, 127, dtype)
    assert requantize.method.name == method


def test_no_channels_are_no_work():
    scaling, bias = fixed_point_scaling(np.full(1, 2.0**-20), False), np.zeros(1, np.int64)
    args = Memory(), scaling, bias, float(2**24), 5, -128, 127, np.dtype(np.int8)
    requantize = Requantize(*args)
    assert requantize.method == Method.INTEGERS
    requantize(np.zeros((1, 0), np.float32), np.zeros((1, 0), np.int8))


def test_pruned_channels_do_not_slow_the_others_down():
    scaling = fixed_point_scaling(np.array([0.004, 2.0**-26, 2.0**-24]), halves_away=True)
    bias, bound = np.array([500, 2**30, -(2**30)]), np.array([2.0**20, 0, 16])
    requantize = Requantize(Memory(), scaling, bias, bound, -7, -128, 127, np.dtype(np.int8))
    assert requantize.method != Method.INTEGERS
    acc = np.stack([np.arange(-20000, 20000), np.zeros(40000), np.full(40000, 16)], axis=1)
    out = np.zeros(acc.shape, np.int8)
    requantize(acc.astype(np.float32), out)
    expected = np.clip(scaling.exact(acc.astype(np.int64) + bias) - 7, -128, 127)
    np.testing.assert_array_equal(out, expected)


def test_equal_scalings_are_computed_once():
    multipliers = np.array([0.5, 0.003])
    found = fixed_point_scaling(multipliers, False)
    assert fixed_point_scaling(multipliers.copy(), np.zeros(2, np.bool_)) is found
    assert fixed_point_scaling(multipliers, True) is not found
    assert not any(array.flags.writeable for array in (found.factor, found.half, found.away))
