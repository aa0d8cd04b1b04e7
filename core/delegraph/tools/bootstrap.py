"""Bootstrap intervals: how far a figure would vary on other samples of the same kind.

Units are what is independent of each other: pictures, rows of a data set, blocks of runs. Not
single runs of a block, which are alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delegraph.json_records import JsonRecord
from delegraph.tools.progress import Progress, untold

RESAMPLES = 1000
CONFIDENCE = 0.95

Statistic = Callable[[NDArray[np.int64]], ArrayLike]
"""A figure, or several in an array, of the units with these positions; some occur repeatedly."""


@dataclass(frozen=True, slots=True)
class Interval(JsonRecord):
    """Where a figure lies, with some confidence.

    Attributes:
        low, high: its ends; both NaN where the figure exists in no resample.
        confidence: share of such intervals that hold the true figure, when units are many.
    """

    low: float
    high: float
    confidence: float = CONFIDENCE

    def __str__(self) -> str:
        return f"{self.low:.4g} to {self.high:.4g}"

    def excludes(self, value: float) -> bool:
        """Return whether *value* is outside the interval."""
        return value < self.low or value > self.high


def resampled(
    statistic: Statistic,
    units: int,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    progress: Progress = untold,
) -> NDArray[np.float64]:
    """Return a figure on *resamples* draws of as many units, with replacement.

    Figures that are compared are returned by one statistic, so that each is of the same units.

    >>> values = np.array([1.0, 2.0, 3.0])
    >>> resampled(lambda drawn: values[drawn].mean(), 3, resamples=2).shape
    (2,)

    Args:
        statistic: the figure; an array for several.
        units: how many there are.
        resamples: how many draws.
        seed: of NumPy's default generator; the same one draws the same units.
        progress: is told each draw.

    Returns:
        ``[resamples, ...], float64``.
    """
    rng = np.random.default_rng(seed)
    figures = []
    for done in range(resamples):
        progress("resampling", done, resamples)
        figures.append(np.asarray(statistic(rng.integers(0, units, units)), np.float64))
    return np.stack(figures)


def percentile_interval(figures: NDArray[np.float64], confidence: float = CONFIDENCE) -> Interval:
    """Return the interval between two percentiles of resampled figures, without NaN.

    >>> percentile_interval(np.arange(101.0), 0.5)
    Interval(low=25.0, high=75.0, confidence=0.5)

    Args:
        figures: ``[resamples]``, of :func:`resampled`.
        confidence: share of the figures in between.
    """
    known = figures[~np.isnan(figures)]
    if not len(known):
        return Interval(np.nan, np.nan, confidence)
    low, high = percentile_ends(known, confidence)
    return Interval(float(low), float(high), confidence)


def percentile_ends(
    figures: NDArray[np.float64], confidence: float = CONFIDENCE
) -> NDArray[np.float64]:
    """Return the percentiles between which a share of resampled figures lies, ``[2, ...]``.

    >>> percentile_ends(np.arange(101.0), 0.5).tolist()
    [25.0, 75.0]

    Args:
        figures: ``[resamples, ...]``, of :func:`resampled`.
        confidence: share of the figures in between.
    """
    tail = (1 - confidence) / 2
    return np.asarray(np.quantile(figures, [tail, 1 - tail], axis=0))
