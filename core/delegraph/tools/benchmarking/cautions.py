"""Warnings about conditions in which measured times mislead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from delegraph.quantities import duration
from delegraph.tools.benchmarking.machine import NOTABLE, Machine
from delegraph.tools.benchmarking.run_control import RunControl
from delegraph.tools.latency import Latency

UNSTABLE = 0.025
"""Coefficient of variation above which times count as unstable; ``trtexec`` has the same."""

OUTLIER = 14.826
"""Number of median absolute deviations from the median that make an outlier, as in hyperfine."""

FEW = 10
"""Number of runs below which a caution says that there are too few; hyperfine makes at least 10."""

SHORT = 1e-4
"""Duration of a run, in seconds, below which the Python call is a notable part of the time."""


def cautions(
    runs: Sequence[float], control: RunControl, machine: Machine, others: float | None = None
) -> Iterator[str]:
    """Yield sentences that say why the run times may mislead.

    *runs* are the seconds of each measured run, in order. For *others*, see :func:`busy`.
    """
    if not runs:
        return
    latency = Latency.of(runs)
    if seen := busy(others, machine):
        low, high = (duration(latency.percentiles[percent]) for percent in (5, 95))
        yield f"{seen}; 90 % of the runs took {low} to {high}"
    if latency.variation > UNSTABLE:
        yield (
            f"unstable: the standard deviation is {100 * latency.variation:.1f} % of the mean, "
            f"more than {100 * UNSTABLE:.1f} %; prefer the median, and a machine without other work"
        )
    if is_first_outlier(runs):
        yield "the first run is an outlier: warm up longer"
    if len(runs) < control.runs:
        count = f"{len(runs)} of {control.runs} runs"
        yield f"the maximum of {control.max_seconds:g} s was over after {count}"
    if len(runs) < FEW:
        yield f"{len(runs)} of at least {FEW} runs: too few to tell how much times vary"
    if latency.median < SHORT:
        yield (
            f"a run takes {1e6 * latency.median:.0f} us: the call from Python, some microseconds, "
            "is a part of it"
        )
    if machine.governors and machine.governors != ("performance",):
        yield f"the clock rate may change: governor {', '.join(machine.governors)}"


def busy(others: float | None, machine: Machine) -> str:
    """Sentence about the work of other processes; empty if the machine was quiet.

    *others* is the mean number of cores that they used meanwhile, None if unknown; *machine* has
    the load before.
    """
    cores, load = machine.processor.usable_cores, machine.load
    before = "" if load is None else f"the load was {load[0]:.1f} before"
    if others is not None:
        if others < NOTABLE * cores:
            return ""
        seen = f"other processes used {others:.1f} of {cores} cores meanwhile"
        return f"busy machine: {seen}" + (f", {before}" if before else "")
    if load is None or load[0] <= cores:
        return ""
    return f"busy machine: {before} on {cores} usable cores"


def is_first_outlier(runs: Sequence[float]) -> bool:
    """Whether the first run took much more or much less time than most runs."""
    times = np.asarray(runs)
    away = np.abs(times - np.median(times))
    deviation = float(np.median(away))
    return deviation > 0 and bool(away[0] > OUTLIER * deviation)
