from __future__ import annotations

import numpy as np
import pytest

from delegraph.tools.bootstrap import Interval, percentile_interval, resampled


def test_a_resample_draws_as_many_units_with_replacement() -> None:
    drawn = resampled(lambda units: units, 5, resamples=200)
    assert drawn.shape == (200, 5)
    assert set(drawn.ravel()) == {0, 1, 2, 3, 4}
    assert any(len(set(row)) < 5 for row in drawn)


def test_the_same_seed_draws_the_same_units() -> None:
    first, again, other = (resampled(lambda u: u, 9, resamples=3, seed=s) for s in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_interval_of_a_mean_is_that_of_the_normal_distribution() -> None:
    values = np.random.default_rng(0).normal(5, 2, 400)
    figures = resampled(lambda units: values[units].mean(), 400, resamples=2000)
    interval = percentile_interval(figures)
    error = values.std() / 20
    assert interval.low == pytest.approx(values.mean() - 1.96 * error, abs=0.2 * error)
    assert interval.high == pytest.approx(values.mean() + 1.96 * error, abs=0.2 * error)


def test_ninety_five_of_a_hundred_intervals_hold_the_truth() -> None:
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(300):
        values = rng.exponential(1.0, 80)
        figures = resampled(lambda units, v=values: v[units].mean(), 80, resamples=200)
        held += not percentile_interval(figures).excludes(1.0)
    assert 0.90 < held / 300 < 0.98


def test_several_figures_are_of_the_same_units() -> None:
    values = np.arange(20.0)
    figures = resampled(lambda units: [values[units].mean(), values[units].mean() + 1], 20)
    assert np.allclose(figures[:, 1] - figures[:, 0], 1.0)


def test_figures_that_do_not_exist_are_left_out() -> None:
    assert percentile_interval(np.array([np.nan, 1.0, 3.0]), 0.5) == Interval(1.5, 2.5, 0.5)
    assert np.isnan(percentile_interval(np.array([np.nan])).low)


def test_progress_is_told_of_each_draw() -> None:
    told: list[float] = []
    resampled(lambda u: 0.0, 2, resamples=3, progress=lambda what, done, total: told.append(done))
    assert told == [0, 1, 2]
