from __future__ import annotations

import statistics
from math import floor

import pytest

from delegraph.tools import Latency

TIMES = [5.0, 1.0, 4.0, 2.0, 3.0, 10.0]


def test_each_statistic_is_the_one_computed_by_hand() -> None:
    found = Latency.of(TIMES)
    assert (found.count, found.first, found.last) == (6, 5.0, 10.0)
    assert (found.min, found.max) == (1.0, 10.0)
    assert found.mean == pytest.approx(25 / 6)
    # squares of the differences from 25/6: (25 + 1 + 16 + 4 + 9 + 100) - 6 * (25/6)^2
    assert found.std == pytest.approx(((155 - 625 / 6) / 6) ** 0.5)
    assert found.std == pytest.approx(statistics.pstdev(TIMES))
    assert found.median == 3.5
    assert found.variation == pytest.approx(found.std / found.mean)


def test_official_percentiles_take_the_nearest_sample() -> None:
    found = Latency.of(TIMES)
    for percent, value in found.nearest.items():
        assert value == sorted(TIMES)[floor(6 * percent / 100)]
    assert found.upper_median == 4.0


def test_percentiles_are_interpolated() -> None:
    assert Latency.of([1.0, 2.0]).percentiles[95] == pytest.approx(1.95)


def test_one_run_has_statistics_too() -> None:
    found = Latency.of([0.25])
    assert (found.min, found.median, found.max, found.std) == (0.25, 0.25, 0.25, 0.0)
    assert set(found.nearest.values()) == {0.25}


def test_json_names_both_kinds_of_percentile() -> None:
    shown = Latency.of(TIMES).to_json()
    assert shown["nearest_percentiles"]["p50"] == 4.0
    assert shown["percentiles"]["p50"] == shown["median"] == 3.5
