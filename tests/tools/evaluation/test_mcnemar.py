from __future__ import annotations

import math

import numpy as np
import pytest
import scipy  # its parts are imported when first used, which here takes a second

from delegraph.tools.evaluation.mcnemar import drop_interval, mcnemar_p_value

COUNTS = [(0, 0), (1, 0), (5, 0), (6, 0), (0, 6), (3, 3), (20, 2), (9, 14), (40, 60), (700, 611)]


@pytest.mark.repetition(2)
@pytest.mark.parametrize(("lost", "gained"), COUNTS)
def test_p_value_is_that_of_the_binomial_test(lost: int, gained: int) -> None:
    expected = scipy.stats.binomtest(lost, lost + gained).pvalue if lost + gained else 1.0
    assert mcnemar_p_value(lost, gained) == pytest.approx(expected, rel=1e-9)


def test_thousands_of_differences_are_no_trouble() -> None:
    assert mcnemar_p_value(4000, 4000) == 1.0
    assert mcnemar_p_value(5000, 4000) == pytest.approx(
        scipy.stats.binomtest(5000, 9000).pvalue, rel=1e-6
    )


@pytest.mark.repetition(1)
@pytest.mark.parametrize("count", [30, 1000])
def test_the_interval_excludes_zero_where_the_test_finds_a_difference(count: int) -> None:
    for lost in range(11):
        for gained in range(11):
            interval = drop_interval(lost, gained, count)
            assert interval.excludes(0) == (mcnemar_p_value(lost, gained) < 0.05)
            assert interval.low <= (lost - gained) / count <= interval.high


def test_the_interval_turns_round_with_the_set_ups() -> None:
    one, other = drop_interval(9, 4, 50), drop_interval(4, 9, 50)
    assert (one.low, one.high) == (-other.high, -other.low)


def test_without_a_difference_the_interval_is_that_of_a_share_of_nothing() -> None:
    """Of n samples none differs: up to 1 - 0.025 ** (1 / n) may (Clopper and Pearson)."""
    interval = drop_interval(0, 0, 50)
    assert interval.high == pytest.approx(1 - 0.025 ** (1 / 50), rel=2e-3)
    assert interval.low == -interval.high


def test_where_all_differ_the_interval_is_that_of_the_direction() -> None:
    """With each of n samples lost or gained, the shares alone are left: twice theirs, minus 1."""
    interval = drop_interval(70, 30, 100)
    low = 2 * scipy.stats.beta.ppf(0.025, 70, 31) - 1
    assert interval.low == pytest.approx(low, abs=0.02)
    assert interval.high == pytest.approx(2 * scipy.stats.beta.ppf(0.975, 71, 30) - 1, abs=0.02)


@pytest.mark.repetition(2)
@pytest.mark.parametrize("count", [8, 16])
@pytest.mark.parametrize("shares", [(0.1, 0.1), (0.3, 0.05), (0.02, 0.0), (0.5, 0.4), (0.0, 0.2)])
def test_at_least_95_of_100_intervals_hold_the_true_drop(
    count: int, shares: tuple[float, float]
) -> None:
    """Exactly: over all counts that can be, with their probabilities."""
    lost_share, gained_share = shares
    covered = 0.0
    for lost in range(count + 1):
        for gained in range(count + 1 - lost):
            same = count - lost - gained
            ways = math.factorial(count) / math.prod(map(math.factorial, (lost, gained, same)))
            rest = 1 - lost_share - gained_share
            probability = ways * lost_share**lost * gained_share**gained * rest**same
            if probability > 1e-6:
                interval = drop_interval(lost, gained, count)
                drop = lost_share - gained_share
                covered += probability * (interval.low <= drop <= interval.high)
    assert covered >= 0.95 - 1e-3


def test_the_interval_narrows_with_the_samples() -> None:
    widths = [np.ptp([i.low, i.high]) for i in (drop_interval(n, 0, 100 * n) for n in (6, 60, 600))]
    assert widths == sorted(widths, reverse=True)
