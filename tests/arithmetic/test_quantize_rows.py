"""Quantisation of rows on the fly, against a slow definition."""

import math

import numpy as np
import pytest

from delegraph.arithmetic.quantize_rows import quantize_rows

F = np.float32


def rounded(value: float) -> int:
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def symmetric(row):
    largest = F(np.abs(row).max())
    if largest == 0:
        return [0] * len(row), F(1), 0
    factor = F(127) / largest
    return [max(-127, min(127, rounded(float(v * factor)))) for v in row], largest / F(127), 0


def asymmetric(row):
    low, high = min(0.0, float(row.min())), max(0.0, float(row.max()))
    if low == high:
        return [0] * len(row), F(1), 0
    scale = float(F(high) - F(low)) / 255
    from_low, from_high = -128 - low / scale, 127 - high / scale
    near_low = 128 + abs(low / scale) < 127 + abs(high / scale)
    zero_point = max(-128, min(127, rounded(from_low if near_low else from_high)))
    factor = F(1) / F(scale)
    stored = [zero_point + rounded(float(v * factor)) for v in row]
    return [max(-128, min(127, v)) for v in stored], F(scale), zero_point


ROWS = np.vstack(
    [
        np.random.default_rng(0).normal(0, 1, (20, 33)),
        np.random.default_rng(1).uniform(0, 3, (5, 33)),
        np.random.default_rng(2).uniform(-3, -1, (5, 33)),
        np.zeros((1, 33)),
        np.full((1, 33), -2.5),
        np.arange(33)[None] - 16.5,
    ]
).astype(F)


@pytest.mark.parametrize("definition", [symmetric, asymmetric])
def test_rows_are_quantised_one_by_one(definition):
    stored, scales, zero_points = quantize_rows(ROWS, asymmetric=definition is asymmetric)
    assert (stored.dtype, scales.dtype, zero_points.dtype) == (np.int8, F, np.int32)
    for k, row in enumerate(ROWS):
        assert (stored[k].tolist(), scales[k], zero_points[k]) == definition(row)


def test_just_below_a_half_rounds_down():
    row = np.array([[127, np.nextafter(F(0.5), F(0)), 0.5]], F)
    assert quantize_rows(row, asymmetric=False)[0].tolist() == [[127, 0, 1]]


@pytest.mark.parametrize("is_asymmetric", [False, True])
def test_no_rows_and_no_columns_are_fine(is_asymmetric):
    for shape in ((0, 3), (2, 0)):
        stored, scales, _ = quantize_rows(np.zeros(shape, F), asymmetric=is_asymmetric)
        assert stored.shape == shape
        assert scales.shape == shape[:1]


@pytest.mark.parametrize("row", [[np.nan, 1], [np.inf, 1], [-np.inf, 1], [3e38, -3e38]])
def test_rows_without_a_finite_scale_have_none(row):
    with np.errstate(all="ignore"):
        _, scales, zero_points = quantize_rows(np.array([row, [0, 1]], F), asymmetric=True)
    assert np.isnan(scales).tolist() == [True, False]
    assert zero_points.tolist() == [0, -128]
