"""Statistics of run times, by the definitions of ``benchmark_model`` and by more exact formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from delegraph.json_records import JsonRecord

PERCENTILES = (5, 50, 90, 95, 99)


def _named(percentiles: Mapping[int, float]) -> dict[str, float]:
    return {f"p{percent}": value for percent, value in percentiles.items()}


@dataclass(frozen=True, slots=True)
class Latency(JsonRecord):
    """Statistics of the times of several runs, in seconds.

    Source:
        Stat, tensorflow/tsl stats_calculator.h, whose percentiles take the nearest sample. The
        standard deviation is not cut to whole microseconds, as it is there.

    >>> Latency.of([0.4, 0.1, 0.2, 0.3]).median, Latency.of([0.4, 0.1, 0.2, 0.3]).upper_median
    (0.25, 0.3)

    Attributes:
        count: number of runs.
        first, last, min, max, mean: seconds.
        std: standard deviation of the population (divided by the count), seconds.
        median: the middle time, or the mean of the two middle times, in seconds.
        percentiles: mapping from percent to seconds, interpolated between samples as NumPy does.
        nearest: mapping from percent to seconds, by the official tool's definition:
            ``sorted[floor(n p / 100)]``.
    """

    count: int
    first: float
    last: float
    min: float
    max: float
    mean: float
    std: float
    median: float
    percentiles: dict[int, float] = field(metadata={"json_value": _named})
    nearest: dict[int, float] = field(
        metadata={"json_key": "nearest_percentiles", "json_value": _named}
    )

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Latency:
        """Return the statistics of *seconds*, at least one run time, in order of measurement."""
        times = np.asarray(seconds, np.float64)
        ordered = np.sort(times)
        ranks = {p: min(len(times) - 1, len(times) * p // 100) for p in PERCENTILES}
        return cls(
            len(times),
            float(times[0]),
            float(times[-1]),
            float(ordered[0]),
            float(ordered[-1]),
            float(times.mean()),
            float(times.std()),
            float(np.median(times)),
            {p: float(np.percentile(times, p)) for p in PERCENTILES},
            {p: float(ordered[rank]) for p, rank in ranks.items()},
        )

    @property
    def upper_median(self) -> float:
        """The official tool's median: the upper of the two middle times if the count is even."""
        return self.nearest[50]

    @property
    def variation(self) -> float:
        """Coefficient of variation: the standard deviation as a share of the mean."""
        return self.std / self.mean if self.mean else 0.0
