"""Cautions: reasons why measured times may mislead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from delegraph.tools.benchmarking.machine import Machine
from delegraph.tools.benchmarking.run_control import RunControl
from delegraph.tools.latency import Latency

UNSTABLE = 0.025
"""Coefficient of variation above which times are unstable, as ``trtexec`` has it."""

OUTLIER = 14.826
"""Median absolute deviations from the median that make an outlier, as hyperfine has it."""

FEW = 10
"""Runs that hyperfine makes at least."""

SHORT = 1e-3
"""Seconds below which pyperf warns of a value."""


def cautions(runs: Sequence[float], control: RunControl, machine: Machine) -> Iterator[str]:
    """Yield why the times of runs may mislead, in words.

    Args:
        runs: seconds of those that count, in the order in which they were taken.
        control: how many there should be.
        machine: where, and what else went on there.
    """
    if not runs:
        return
    latency = Latency.of(runs)
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
    cores = machine.processor.usable_cores
    if machine.load is not None and machine.load[0] > cores:
        yield f"other work: the load was {machine.load[0]:.1f} on {cores} usable cores before"
    if machine.governors and machine.governors != ("performance",):
        yield f"the clock rate may change: governor {', '.join(machine.governors)}"


def is_first_outlier(runs: Sequence[float]) -> bool:
    """Return whether the first run took much longer or shorter than most."""
    times = np.asarray(runs)
    away = np.abs(times - np.median(times))
    deviation = float(np.median(away))
    return deviation > 0 and bool(away[0] > OUTLIER * deviation)
