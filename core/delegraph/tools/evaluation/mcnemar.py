"""Loss of accuracy between two set-ups: McNemar's test and an interval."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from delegraph.tools.bootstrap import CONFIDENCE, Interval

_QUANTILES = 500


def mcnemar_p_value(lost: int, gained: int) -> float:
    """Return the p-value of the exact McNemar test, two-sided.

    Args:
        lost: number of samples that only the first set-up has right.
        gained: number of samples that only the second set-up has right.

    >>> mcnemar_p_value(6, 0), mcnemar_p_value(3, 3)
    (0.03125, 1.0)
    """
    total, fewer = lost + gained, min(lost, gained)
    tail = ways = 1
    for k in range(fewer):
        ways = ways * (total - k) // (k + 1)
        tail += ways
    return min(1.0, 2 * tail / 2**total) if total else 1.0


def drop_interval(lost: int, gained: int, count: int) -> Interval:
    """Return the interval of the drop in accuracy from a first set-up to a second, as a share.

    The interval excludes 0 exactly if :func:`mcnemar_p_value` is below 5 %, for any number of
    samples.

    Args:
        lost: number of samples that only the first set-up has right.
        gained: number of samples that only the second set-up has right.
        count: number of all samples, at least one.

    >>> drop_interval(0, 0, 100).excludes(0), drop_interval(20, 2, 100).excludes(0)
    (False, True)

    Source:
        Fay and Lumbard, "Confidence intervals for difference in proportions for matched pairs
        compatible with exact McNemar's or sign tests", Statistics in Medicine 40 (2021): the
        confidence distribution of the share of samples that differ is melded with that of the
        direction in which they differ.
    """
    low, high = _lower_end(lost, gained, count), -_lower_end(gained, lost, count)
    if mcnemar_p_value(lost, gained) < 1 - CONFIDENCE:
        return Interval(low, high)
    return Interval(min(low, 0.0), max(high, 0.0))  # quantiles on a grid may just miss 0


def _lower_end(lost: int, gained: int, count: int) -> float:
    """Return the lower end of the interval of ``(lost - gained) / count``."""
    differing = lost + gained
    direction = 2 * _beta_quantiles(lost, gained + 1) - 1  # from all gained, -1, to all lost, 1
    few = _beta_quantiles(differing, count - differing + 1)
    many = _beta_quantiles(differing + 1, count - differing)
    melded = direction[:, None] * np.where(direction[:, None] > 0, few, many)
    return float(np.quantile(melded, (1 - CONFIDENCE) / 2, method="hazen"))


def _beta_quantiles(a: int, b: int) -> NDArray[np.float64]:
    """Return quantiles of a beta distribution, ``[_QUANTILES], float64``; *a* or *b* may be 0."""
    if a == 0 or b == 0:
        return np.full(_QUANTILES, float(b == 0))
    mean = a / (a + b)
    spread = 12 * math.sqrt(mean * (1 - mean) / (a + b + 1))
    edges = np.linspace(max(0.0, mean - spread), min(1.0, mean + spread), 8001)
    x = (edges[1:] + edges[:-1]) / 2
    density = (a - 1) * np.log(x) + (b - 1) * np.log1p(-x)
    shares = np.concatenate([[0.0], np.cumsum(np.exp(density - density.max()))])
    places = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    return np.interp(places, shares / shares[-1], edges)
