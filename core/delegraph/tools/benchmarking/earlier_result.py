"""Compares a benchmark's result with an earlier result in a file, for example of another commit."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delegraph.errors import ArgumentError
from delegraph.json_records import JsonRecord
from delegraph.tools.benchmarking.result import BenchmarkResult
from delegraph.tools.benchmarking.verdicts import SAME_WITHIN, Ratio
from delegraph.tools.bootstrap import percentile_ends, resampled
from delegraph.tools.setup import Setup

LEAST_GROUPS = 5
"""Least number of groups of runs from which an interval is computed."""

_GROUPS = 20


@dataclass(frozen=True, slots=True)
class Then:
    """Figures of an earlier benchmark result.

    Attributes:
        path: file of the result.
        runs: seconds of each run.
        init: seconds until the model was ready.
        peak: largest resident memory in bytes; None if unknown.
        conditions: other conditions on which times depend: set-up, placement, machine, versions.
    """

    path: str
    runs: NDArray[np.float64]
    init: float
    peak: int | None
    conditions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SinceThen(JsonRecord):
    """A result compared with an earlier result.

    Attributes:
        path: file of the earlier result.
        figures: mapping from a figure's name to its earlier and its present value: seconds, or
            bytes for ``peak memory``; None if unknown.
        ratio: present time divided by the earlier time, from the quickest runs, with its interval.
        verdict: ``faster``, ``slower``, ``same within 5 %``, or ``too noisy``.
        changes: texts about conditions that differ, and so may explain the difference.
    """

    path: str
    figures: Mapping[str, tuple[float | None, float | None]]
    ratio: Ratio
    verdict: str
    changes: tuple[str, ...]

    def is_slower_than(self, share: float) -> bool:
        """Whether the present runs are certainly slower, by more than *share* (0.05 means 5 %)."""
        return self.ratio.low > 1 + share


def read_result(path: str) -> Then:
    """Return the figures in the file *path*, which ``benchmark --save`` has written.

    Raises:
        ArgumentError: the file cannot be read, or is no such result.
    """
    try:
        with open(path, encoding="utf-8") as file:
            content: Any = json.load(file)
        runs = np.array([float(seconds) for seconds in content["samples"]["runs"]])
        conditions = _conditions(content)
        peak, init = content["peak_memory"], float(content["init_seconds"])
        then = Then(path, runs, init, None if peak is None else int(peak), conditions)
    except OSError as error:
        raise ArgumentError(f"{path!r}: {error.strerror or error}") from error
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise ArgumentError(
            f"{path!r} is no result of a benchmark of one set-up: --save FILE.json writes one"
        ) from error
    _require_runs(then.runs, path)
    return then


def require_same_model(then: Then, model: str) -> None:
    """Check that an earlier result is one of *model*, whose file may be in another folder now.

    Raises:
        ArgumentError: the earlier result is one of a model of another name.
    """
    before, now = (os.path.basename(path) for path in (then.conditions.get("model", model), model))
    if before != now:
        raise ArgumentError(
            f"{then.path!r} is a result of another model: {before} then, {now} now; "
            "--against compares two models"
        )


def _require_runs(runs: NDArray[np.float64], of: str) -> None:
    if len(runs) < LEAST_GROUPS or not (np.isfinite(runs) & (runs > 0)).all():
        raise ArgumentError(f"{of!r} has {len(runs)} runs, expected {LEAST_GROUPS} at least")


def since_then(now: BenchmarkResult, then: Then, *, same_within: float = SAME_WITHIN) -> SinceThen:
    """Return a result compared with an earlier result, with a verdict.

    Runs of two processes at two times are compared, so the verdict is less certain than for set-ups
    that take turns. *same_within* is the largest difference that counts as equal, as a share.

    Raises:
        ArgumentError: the present result has too few runs.
    """
    _require_runs(np.asarray(now.runs), "the present result")
    ratio = _ratio(np.asarray(now.runs), then.runs)
    figures: dict[str, tuple[float | None, float | None]] = {
        "median": (float(np.median(then.runs)), float(np.median(now.runs))),
        "min": (float(then.runs.min()), min(now.runs)),
        "init": (then.init, now.init_seconds),
        "peak memory": (then.peak, now.peak),
    }
    changes = _changes(then.conditions, _conditions(now.to_json()))
    return SinceThen(then.path, figures, ratio, _verdict(ratio, same_within), changes)


def _ratio(now: NDArray[np.float64], then: NDArray[np.float64]) -> Ratio:
    """Return present run times divided by earlier run times, with a confidence interval.

    Consecutive runs form groups; the quickest run of each group represents the group. Both arrays
    are seconds, ``[runs]``.
    """
    groups = min(_GROUPS, len(now), len(then))
    drawn, middle = [], []
    for seed, runs in enumerate((now, then)):
        quickest = np.log([group.min() for group in np.array_split(runs, groups)])
        drawn.append(resampled(partial(_median, quickest), groups, seed=seed))
        middle.append(float(np.median(quickest)))
    low, high = percentile_ends(drawn[0] - drawn[1])
    return Ratio(math.exp(middle[0] - middle[1]), math.exp(low), math.exp(high))


def _median(values: NDArray[np.float64], units: NDArray[np.int64]) -> Any:
    return np.median(values[units])


def _verdict(ratio: Ratio, same_within: float) -> str:
    if ratio.high < 1 / (1 + same_within):
        return "faster"
    if ratio.low > 1 + same_within:
        return "slower"
    if ratio.reach <= same_within:
        return f"same within {100 * same_within:g} %"
    return "too noisy"


def _conditions(result: Mapping[str, Any]) -> dict[str, str]:
    """Return, by name, the conditions of a result in JSON on which run times depend.

    Results of earlier releases have no ``threads``; their set-up says what was asked.
    """
    asked = dict.fromkeys(spec.name for spec in fields(Setup)) | result["setup"]
    if result.get("threads") is not None:
        asked["threads"] = result["threads"]
    found = {name.replace("_", " "): _in_words(value) for name, value in asked.items()}
    found["placement"] = str(result["placement"])
    machine = result["machine"]
    processor = machine["processor"]
    found |= {"processor": str(processor["name"]), "cores": str(processor["usable_cores"])}
    found |= {"system": str(machine["system"]), "python": str(machine["python"])}
    return found | {name: str(version) for name, version in machine["versions"].items()}


def _in_words(value: object) -> str:
    if value is None:
        return "default"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _changes(then: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    names = dict.fromkeys([*now, *then])
    return tuple(
        f"{name}: {then.get(name, 'none')} then, {now.get(name, 'none')} now"
        for name in names
        if then.get(name) != now.get(name)
    )
