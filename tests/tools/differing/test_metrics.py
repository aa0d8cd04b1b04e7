"""Each metric against what it means, written down slowly."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from delegraph.tools.differing.array_metrics import array_metrics
from delegraph.tools.differing.metrics import Spread, real_values, spreads
from delegraph.tools.differing.metrics import tensor_difference as difference

PLAIN: dict[str, Any] = {}

FLOATS = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]
INTEGERS = [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64]


def quantized(scale: Any, zero_point: Any = 0, axis: int = 0) -> dict[str, Any]:
    return {
        "quantization_parameters": {
            "scales": np.atleast_1d(np.float32(scale)),
            "zero_points": np.atleast_1d(np.int32(zero_point)),
            "quantized_dimension": axis,
        }
    }


def slow_ulps(a: Any, b: Any) -> int:
    """Count the floats from one to the other."""
    low, high = (a, b) if a <= b else (b, a)
    steps = 0
    while low != high:
        low = np.nextafter(low, high)
        steps += 1
    return steps


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_metrics_are_their_definitions(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 100, (5, 41)).astype(dtype) for _ in range(2))
    x, y = ([float(v) for v in values.reshape(-1)] for values in (a, b))
    off = [abs(i - j) for i, j in zip(x, y, strict=True)]
    found = difference(a, b, PLAIN, PLAIN)
    assert found.raw is not None
    assert found.count == 205
    assert found.unequal == sum(v > 0 for v in off)
    assert found.raw.mean == pytest.approx(sum(off) / len(off), rel=1e-12)
    assert found.raw.max == max(off)
    assert found.raw.index == divmod(off.index(max(off)), 41)
    assert (found.raw.found, found.raw.expected) == (x[off.index(max(off))], y[off.index(max(off))])
    assert found.raw.p999 == sorted(off)[math.ceil(0.999 * 204)]
    dot = sum(i * j for i, j in zip(x, y, strict=True))
    norms = math.sqrt(sum(i * i for i in x)) * math.sqrt(sum(j * j for j in y))
    assert found.raw.cosine == pytest.approx(dot / norms, rel=1e-12)
    snr = 10 * math.log10(sum(j * j for j in y) / sum(v * v for v in off))
    assert found.raw.snr_db == pytest.approx(snr, rel=1e-9)
    assert found.real is None


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_ulps_are_floats_in_between(dtype: Any) -> None:
    a = np.array([1.0, 1.0, -0.0, 2.0, -1e-7], dtype)
    b = a.copy()
    for i, steps in enumerate([0, 3, 0, 1, 5]):
        for _ in range(steps):
            b[i] = np.nextafter(b[i], dtype(-9 if i == 3 else 9))
    b[2] = 0.0
    found = difference(a, b, PLAIN, PLAIN)
    counts = [slow_ulps(i, j) for i, j in zip(a, b, strict=True)]
    assert (found.unit, found.max_units) == ("ulp", max(counts))
    assert found.mean_units == pytest.approx(np.mean(counts))


def test_ulps_cross_zero() -> None:
    tiny = np.float32(1e-45)  # the least positive float
    found = difference(np.array([tiny, tiny]), np.array([-tiny, tiny]), PLAIN, PLAIN)
    assert found.max_units == 2


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_steps_of_large_integers_are_exact(dtype: Any) -> None:
    limits = np.iinfo(dtype)
    a = np.array([limits.max, limits.max - 1, limits.max], dtype)
    b = np.array([limits.max, limits.max, limits.min], dtype)
    found = difference(a, b, PLAIN, PLAIN)
    assert found.unequal == 2
    assert (found.unit, found.max_units) == ("step", float(2**64 - 1))
    one = difference(a[:2], b[:2], PLAIN, PLAIN)
    assert (one.max_units, one.raw and one.raw.index) == (1.0, (1,))


def test_nan_and_infinities_count_and_are_not_replaced() -> None:
    nan, inf = np.nan, np.inf
    a = np.array([nan, nan, inf, inf, 1.0, 2.0], np.float32)
    b = np.array([nan, 3.0, inf, -inf, 1.0, inf], np.float32)
    found = difference(a, b, PLAIN, PLAIN)
    assert (found.nan, found.infinite) == ((2, 1), (2, 3))
    assert found.unequal == 3
    assert found.raw is not None
    assert (found.raw.mean, found.raw.max, found.raw.index) == (inf, inf, (1,))
    assert (found.raw.p999, found.max_units) == (inf, inf)
    assert math.isnan(found.raw.cosine)
    assert math.isnan(found.raw.snr_db)
    assert math.isnan(found.raw.found)
    alike = difference(a[:1], b[:1], PLAIN, PLAIN)
    assert (alike.unequal, alike.max_units, alike.raw and alike.raw.max) == (0, 0, 0)


def test_one_wrong_element_shows_whatever_the_mean_says() -> None:
    b = np.ones(1_000_000, np.float32)
    a = b.copy()
    a[123_456] = 9
    found = difference(a, b, PLAIN, PLAIN).raw
    assert found is not None
    assert found.mean == pytest.approx(8e-6)
    assert (found.max, found.index, found.p999) == (8.0, (123_456,), 0.0)


def test_quantised_values_are_compared_in_both_ways() -> None:
    details = quantized(0.5, -3)
    found = difference(np.int8([1, 7, 2]), np.int8([1, 3, 2]), details, details)
    assert found.raw is not None
    assert found.real is not None
    assert (found.raw.max, found.real.max, found.max_units) == (4, 2.0, 4)
    assert (found.real.found, found.real.expected) == (5.0, 3.0)


def test_channels_have_scales_of_their_own() -> None:
    values = np.int8([[1, 1], [2, 2]])
    np.testing.assert_array_equal(
        real_values(values, quantized([0.5, 2.0], [0, 1], axis=1)), [[0.5, 0], [1, 2]]
    )
    np.testing.assert_array_equal(
        real_values(values, quantized([0.5, 2.0], [0, 1], axis=0)), [[0.5, 0.5], [2, 2]]
    )


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, np.complex64, np.bool_])
def test_equal_arrays_are_seen_at_once(dtype: Any) -> None:
    """What is found so is what sums over all elements give, as for arrays with gaps."""
    values = np.random.default_rng(0).integers(1, 100, (5, 41)).astype(dtype)
    fast = difference(values, values.copy(), PLAIN, PLAIN)
    assert fast.raw is not None
    assert (fast.raw.cosine, fast.unequal, fast.nan) == (1.0, 0, (0, 0))
    slow = difference(np.asfortranarray(values), values, PLAIN, PLAIN)
    assert slow.raw is not None
    assert slow.raw.cosine == pytest.approx(1.0, abs=1e-12)
    assert replace(slow, raw=replace(slow.raw, cosine=1.0)) == fast


@pytest.mark.parametrize("axis", [0, 1])
def test_equal_arrays_are_seen_at_once_in_real_values_too(axis: int) -> None:
    values = np.arange(1, 10, dtype=np.int8).reshape(3, 3)
    details = quantized([0.5, 2, 4], [-3, 0, 1], axis=axis)
    found = difference(values, values.copy(), details, details)
    assert found.real is not None
    assert (found.real.found, found.real.max, found.real.index) == (2.0, 0.0, (0, 0))
    assert (found.real.cosine, found.real.snr_db) == (1.0, np.inf)
    details = quantized([0.5, np.inf, 4], [-3, 0, 1], axis=axis)
    found = difference(values, values.copy(), details, details)
    assert found.real is not None
    assert np.isnan(found.real.cosine)


@pytest.mark.parametrize("odd", [[np.nan], [np.inf], [np.inf, -np.inf]])
def test_equal_arrays_with_nan_or_infinities_have_no_cosine(odd: list[float]) -> None:
    values = np.float32([1, *odd])
    found = difference(values, values.copy(), PLAIN, PLAIN)
    assert found.raw is not None
    assert (found.raw.max, found.unequal, np.isnan(found.raw.cosine)) == (0, 0, True)


def test_other_types_are_compared_by_what_they_stand_for() -> None:
    found = difference(np.int8([2, 4]), np.float32([1.0, 2.5]), quantized(0.5), PLAIN)
    assert found.remark == "types differ: int8, reference float32"
    assert found.raw is None
    assert found.compared is found.real
    assert found.real is not None
    assert (found.real.max, found.unequal, found.unit) == (0.5, 1, "")


def test_other_quantization_is_compared_by_what_it_stands_for() -> None:
    found = difference(np.int8([2, 4]), np.int8([1, 2]), quantized(0.5), quantized(1.0))
    assert (found.remark, found.raw, found.unequal) == ("quantization differs", None, 0)


def test_other_shapes_are_said() -> None:
    found = difference(np.zeros((2, 3)), np.zeros((3, 2)), PLAIN, PLAIN)
    assert found.remark == "shapes differ: [2, 3], reference [3, 2]"
    assert found.compared is None


def test_strings_and_bools_are_equal_or_not() -> None:
    texts = difference(np.array([b"a", b"b"], object), np.array([b"a", b"c"], object), PLAIN, PLAIN)
    assert (texts.unequal, texts.unit, texts.max_units) == (1, "", None)
    bools = difference(np.array([True, True]), np.array([True, False]), PLAIN, PLAIN)
    assert bools.raw is not None
    assert (bools.unequal, bools.raw.mean) == (1, 0.5)


def test_complex_numbers_are_compared_by_their_distance() -> None:
    found = difference(np.array([3 + 4j]), np.array([0j]), PLAIN, PLAIN).raw
    assert found is not None
    assert (found.max, found.found, found.expected) == (5.0, 5.0, 0.0)


def test_nothing_differs_by_nothing() -> None:
    nothing: NDArray[Any] = np.zeros((0, 3), np.float32)
    found = difference(nothing, nothing, PLAIN, PLAIN)
    assert (found.count, found.raw and found.raw.max, found.mean_units) == (0, 0, 0)


def test_squares_do_not_overflow() -> None:
    big = np.array([1e300, -1e300])
    found = difference(big, big / 2, PLAIN, PLAIN).raw
    assert found is not None
    assert found.cosine == pytest.approx(1)
    assert found.snr_db == pytest.approx(0, abs=1e-9)


def test_zeros_have_no_direction() -> None:
    zero, one = np.zeros(3), np.ones(3)
    cosines = [
        found.raw.cosine
        for found in (difference(a, b, PLAIN, PLAIN) for a, b in [(zero, zero), (zero, one)])
        if found.raw is not None
    ]
    assert cosines == [1.0, 0.0]


def test_spreads_are_of_the_population() -> None:
    assert Spread.of([1.0, 3.0]) == Spread(2.0, 1.0, 1.0, 3.0)
    runs = [difference(np.ones(2) * k, np.zeros(2), PLAIN, PLAIN).raw for k in (1, 3)]
    assert spreads([r for r in runs if r is not None])["mean"] == Spread(2.0, 1.0, 1.0, 3.0)


@pytest.mark.parametrize("value", [1.5, math.inf, math.nan])
def test_the_spread_of_one_run_is_that_of_two_equal_runs(value: float) -> None:
    assert repr(Spread.of([value])) == repr(Spread.of([value, value]))


def test_pieces_add_up_to_the_whole() -> None:
    """Large arrays are compared in pieces; NaN in both arrays at one place is no difference."""
    rng = np.random.default_rng(3)
    b = rng.normal(size=(7, 11, 13, 57)).astype(np.float32)
    a = b + rng.normal(size=b.shape).astype(np.float32) * (rng.random(b.shape) < 0.3)
    found = difference(a, b, PLAIN, PLAIN)
    off = np.abs(a.astype(np.float64) - b)
    assert found.raw is not None
    assert found.unequal == np.count_nonzero(off)
    assert found.raw.index == np.unravel_index(off.argmax(), off.shape)
    assert found.raw.p999 == np.quantile(off, 0.999, method="higher")
    assert found.raw.snr_db == pytest.approx(10 * np.log10((b**2.0).sum() / (off**2).sum()))
    a[0, 0, 0, 0] = b[0, 0, 0, 0] = np.nan
    again = difference(a, b, PLAIN, PLAIN)
    assert (again.nan, again.raw and math.isnan(again.raw.cosine)) == ((1, 1), True)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("zero_point", [0, 5, 100])
def test_bytes_have_the_metrics_of_the_numbers_that_they_stand_for(
    dtype: Any, zero_point: int
) -> None:
    random = np.random.default_rng(zero_point)
    limits = np.iinfo(dtype)
    a, b = random.integers(limits.min, limits.max, (2, 30_000), dtype, endpoint=True)
    b[:9000] = a[:9000]
    details = {
        "quantization_parameters": {
            "scales": np.float32([1 / 32]),
            "zero_points": np.int32([zero_point]),
            "quantized_dimension": 0,
        }
    }
    found = difference(a, b, details, details).real
    right = array_metrics(real_values(a, details), real_values(b, details)).metrics
    assert found is not None
    for name in ("mean", "max", "found", "expected", "p999", "cosine", "snr_db"):
        assert getattr(found, name) == pytest.approx(getattr(right, name), rel=1e-12), name
    assert found.index == right.index


def test_bytes_that_stand_for_zero_have_no_signal() -> None:
    details = {
        "quantization_parameters": {"scales": [0.5], "zero_points": [3], "quantized_dimension": 0}
    }
    test, zero = np.int8([3, 4]), np.int8([3, 3])
    found = difference(test, zero, details, details).real
    assert found is not None
    assert (found.cosine, found.snr_db, found.max) == (0.0, -math.inf, 0.5)
