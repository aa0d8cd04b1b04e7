"""Why times may mislead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from delegraph.tools.latency import Latency

UNSTABLE = 0.025
"""Coefficient of variation above which times are called unstable, as ``trtexec`` does."""

OUTLIER = 14.826
"""Median deviations from the median that make an outlier, as in hyperfine."""

SHORTEST = 1e-4
"""Seconds below which a run is too short for a clock and a call in Python."""


def cautions(runs: Sequence[float]) -> Iterator[str]:
    """Yield why the times of the runs that count may mislead.

    Args:
        runs: seconds, in the order in which they were taken.
    """
    if not runs:
        return
    latency = Latency.of(runs)
    if latency.variation > UNSTABLE:
        yield (
            f"unstable: the standard deviation is {latency.variation:.1%} of the mean "
            f"(more than {UNSTABLE:.1%}); other work, or a clock rate that changes"
        )
    outliers = [index for index, is_one in enumerate(_outliers(runs)) if is_one]
    if outliers[:1] == [0]:
        yield "the first run is an outlier: warm up longer"
    elif outliers:
        yield f"{len(outliers)} of {len(runs)} runs are outliers: quieten the machine"
    if latency.median < SHORTEST:
        yield (
            f"a run takes {1e6 * latency.median:.0f} us: the call itself, some microseconds, is a "
            "part of it"
        )


def _outliers(runs: Sequence[float]) -> Sequence[bool]:
    """Return which times are far from the median, by the median absolute deviation."""
    times = np.asarray(runs)
    away = np.abs(times - np.median(times))
    deviation = np.median(away)
    found: list[bool] = (away > OUTLIER * deviation).tolist() if deviation else [False] * len(runs)
    return found
