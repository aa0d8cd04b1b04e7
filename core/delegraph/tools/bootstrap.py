"""Bootstrap intervals of a figure: the range of the figure over resampled units.

Units are items that are independent of each other: pictures, rows of a data set, blocks of runs.
Single runs of a block are not units, because they depend on each other.
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
"""Function that returns a figure, or an array of figures, for the units at given positions.

A position may occur several times.
"""


@dataclass(frozen=True, slots=True)
class Interval(JsonRecord):
    """Interval in which a figure lies with some confidence.

    Attributes:
        low, high: ends of the interval; both NaN if the figure exists in no resample.
        confidence: share of such intervals that contain the true figure, if there are many units.
    """

    low: float
    high: float
    confidence: float = CONFIDENCE

    def __str__(self) -> str:
        return f"{self.low:.4g} to {self.high:.4g}"

    def excludes(self, value: float) -> bool:
        """Whether *value* is outside the interval."""
        return value < self.low or value > self.high


def resampled(
    statistic: Statistic,
    units: int,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    progress: Progress = untold,
) -> NDArray[np.float64]:
    """Return a figure on each of *resamples* random draws of units, with replacement.

    To compare figures, return them from one statistic, so that they are computed on the same draws.

    >>> values = np.array([1.0, 2.0, 3.0])
    >>> resampled(lambda drawn: values[drawn].mean(), 3, resamples=2).shape
    (2,)

    Args:
        statistic: function that returns the figure, or an array of figures, for drawn units.
        units: number of units; each draw has the same number.
        resamples: number of draws.
        seed: seed of NumPy's default generator; equal seeds draw equal units.
        progress: function that is called after each draw.

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
    """Return the percentile interval of resampled figures; NaN figures are ignored.

    >>> percentile_interval(np.arange(101.0), 0.5)
    Interval(low=25.0, high=75.0, confidence=0.5)

    Args:
        figures: ``[resamples]``, from :func:`resampled`.
        confidence: share of the figures inside the interval.
    """
    known = figures[~np.isnan(figures)]
    if not len(known):
        return Interval(np.nan, np.nan, confidence)
    low, high = percentile_ends(known, confidence)
    return Interval(float(low), float(high), confidence)


def percentile_ends(
    figures: NDArray[np.float64], confidence: float = CONFIDENCE
) -> NDArray[np.float64]:
    """Return the percentiles that enclose a given share of resampled figures, ``[2, ...]``.

    >>> percentile_ends(np.arange(101.0), 0.5).tolist()
    [25.0, 75.0]

    Args:
        figures: ``[resamples, ...]``, from :func:`resampled`.
        confidence: share of the figures between the two percentiles.
    """
    tail = (1 - confidence) / 2
    return np.asarray(np.quantile(figures, [tail, 1 - tail], axis=0))
