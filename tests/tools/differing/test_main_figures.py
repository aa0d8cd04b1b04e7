"""The main figures of float32 arrays are those of all metrics."""

from __future__ import annotations

import math

import numpy as np
import pytest

from delegraph.tools.differing.array_metrics import PIECE, array_metrics
from delegraph.tools.differing.main_figures import main_figures

RANDOM = np.random.default_rng(0)
BASE = RANDOM.normal(size=(3, PIECE)).astype(np.float32)
NOISE = RANDOM.normal(size=BASE.shape).astype(np.float32)


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e-15, 1e-18])
@pytest.mark.parametrize("size", [1.0, 1e-12, 1e12, 1e-25])
def test_they_are_those_of_all_metrics(size: float, scale: float) -> None:
    right = (BASE * size).astype(np.float32)
    test = right + (NOISE * (size * scale)).astype(np.float32)
    found, expected = main_figures(test, right), array_metrics(test, right)
    assert found is not None
    assert found.unequal == expected.unequal
    assert found.metrics.max == pytest.approx(expected.metrics.max, rel=1e-6)
    assert found.metrics.snr_db == pytest.approx(expected.metrics.snr_db, abs=1e-4)
    assert math.isnan(found.metrics.p999) == bool(found.unequal)


def test_the_place_of_the_greatest_difference_is_found() -> None:
    test = BASE.copy()
    test[2, 7] += 100
    found = main_figures(test, BASE)
    assert found is not None
    assert (found.unequal, found.metrics.index) == (1, (2, 7))
    assert (found.metrics.found, found.metrics.expected) == (test[2, 7], BASE[2, 7])


def test_zeros_differ_by_all_of_the_noise() -> None:
    found = main_figures(NOISE, np.zeros_like(NOISE))
    assert found is not None
    assert found.metrics.snr_db == -np.inf


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize("side", [0, 1])
def test_values_that_are_not_finite_or_too_large_need_all_metrics(side: int, value: float) -> None:
    pair = [BASE.copy(), BASE.copy()]
    pair[side][1, 1] = value
    assert main_figures(*pair) is None


@pytest.mark.parametrize("values", [np.zeros(3), np.zeros(3, np.int32), np.zeros(0, np.float32)])
def test_other_arrays_need_all_metrics(values: np.ndarray) -> None:
    assert main_figures(values, values) is None
